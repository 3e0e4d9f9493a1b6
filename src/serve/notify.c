/* Written against the documented protocol: a library for one datagram would be one more to load. */
#include "serve/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The address in `path`; 0 when it is none. A leading '@' stands for the abstract namespace. */
static socklen_t address_of(const char *path, struct sockaddr_un *ret_address)
{
    size_t len = strlen(path);

    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(ret_address->sun_path)) {
        return 0;
    }
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_address->sun_path, path, len);
    if (path[0] == '@') {
        ret_address->sun_path[0] = '\0';
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    socklen_t len = path == NULL ? 0 : address_of(path, &address);

    if (len == 0) {
        return;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return;
    }
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, len);
    (void)close(fd);
}

void notify_reloading(void)
{
    struct timespec now;
    char state[80];

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    (void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
                   (unsigned long long)now.tv_sec * 1000000 +
                       (unsigned long long)now.tv_nsec / 1000);
    notify_send(state);
}
