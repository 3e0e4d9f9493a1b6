/* Tells the service manager how the server is, by the protocol of sd_notify(3): a datagram to the
 * socket that NOTIFY_SOCKET names. Without one nothing is done. */
#ifndef ARBE_SERVE_NOTIFY_H
#define ARBE_SERVE_NOTIFY_H

/* Sends `state`, lines such as "READY=1". Does not block; what cannot be sent is lost, since there
 * is nobody else to tell. */
void notify_send(const char *state);

/* Sends that the settings are being read again; READY=1 is to follow. */
void notify_reloading(void);

#endif
