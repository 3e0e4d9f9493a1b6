/* The version, once: shown by --version, and by nothing that a client sees. */
#ifndef ARBE_CLI_VERSION_H
#define ARBE_CLI_VERSION_H

#define ARBE_VERSION "0.1.0"

#endif
