/* The version, once: shown by --version and /metrics, and by nothing else that a client sees. */
#ifndef ARBE_BASE_VERSION_H
#define ARBE_BASE_VERSION_H

#define ARBE_VERSION "0.1.0"

#endif
