/* A service manager's socket: binds the path that it is given and prints each datagram, its lines
 * joined by spaces. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    if (argc != 2 || fd < 0 || strlen(argv[1]) >= sizeof(address.sun_path)) {
        return 2;
    }
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror(argv[1]);
        return 1;
    }
    puts("bound");
    fflush(stdout);
    for (;;) {
        char text[4096];
        ssize_t len = recv(fd, text, sizeof(text) - 1, 0);

        if (len < 0) {
            return 1;
        }
        text[len] = '\0';
        for (char *c = text; *c != '\0'; c++) {
            *c = *c == '\n' ? ' ' : *c;
        }
        puts(text);
        fflush(stdout);
    }
}
