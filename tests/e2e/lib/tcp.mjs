// What the kernel says of TCP connections on this machine.
import { readFileSync } from 'node:fs';

// Those of the server that listens on `port`, accepted or not: { peer, unsent, unread }, the other end's port and bytes that the
// other end has not taken, or the server not read.
export function connectionsTo(port) {
    const rows = readFileSync('/proc/net/tcp', 'utf8').trimEnd().split('\n').slice(1).map((line) => line.trim().split(/\s+/));
    const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    return rows.filter(([, from, , state]) => from.endsWith(local) && state === '01').map(([, , to, , queues]) => {
        const [unsent, unread] = queues.split(':').map((bytes) => parseInt(bytes, 16));
        return { peer: parseInt(to.split(':')[1], 16), unsent, unread };
    });
}

// Whether the other end of `raw`, a connection to `server`, has bytes for it that do not get on.
export function isStuck(server, raw) {
    return connectionsTo(server.port).some(({ peer, unsent }) => peer === raw.socket.localPort && unsent > 0);
}
