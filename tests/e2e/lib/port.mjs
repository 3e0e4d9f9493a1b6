// Ports for servers that go and come back to where they were.
import { randomInt } from 'node:crypto';
import dgram from 'node:dgram';
import { readFileSync } from 'node:fs';
import net from 'node:net';

// Where those begin that the system gives by itself, to whoever asks for any: they would be gone meanwhile, once in a while.
const GIVEN_FROM = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/)[0]);
const FROM = 10_000;

function isFree(port) {
    return new Promise((done) => {
        const probe = net.createServer();
        probe.on('error', () => done(false));
        probe.listen(port, '127.0.0.1', () => probe.close(() => done(true)));
    });
}

// Whether the number is this test's from now on, of all that ask here at once, also in other processes: a datagram socket
// of the same number says so, until the process ends.
function claim(port) {
    return new Promise((done) => {
        const sign = dgram.createSocket('udp4');
        sign.on('error', () => done(false));
        sign.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
            sign.unref();
            done(true);
        });
    });
}

// A port of 127.0.0.1 that nobody has, and that nobody is given by chance.
export async function lastingPort() {
    for (;;) {
        const port = randomInt(FROM, Math.max(GIVEN_FROM, 2 * FROM));
        if (await claim(port) && await isFree(port)) {
            return port;
        }
    }
}
