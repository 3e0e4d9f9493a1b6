// The few requests a measurement needs before it begins.
import http from 'node:http';

const CONNECTIONS = 64;

export class Client {
    constructor(server, connections = CONNECTIONS) {
        this.port = server.port;
        this.connections = connections;
        this.agent = new http.Agent({ keepAlive: true, maxSockets: connections });
    }

    // Sends one request; resolves with { status, headers, body }.
    send(method, path, { body, type, headers = {} } = {}) {
        const fields = { ...headers };
        if (type) {
            fields['Content-Type'] = type;
        }
        if (method === 'PUT' || method === 'POST') {
            fields['Content-Length'] = body ? Buffer.byteLength(body) : 0;
        }
        return new Promise((resolve, reject) => {
            const request = http.request({ host: '127.0.0.1', port: this.port, method, path,
                agent: this.agent, headers: fields }, (response) => {
                const pieces = [];
                response.on('data', (piece) => pieces.push(piece));
                response.on('error', reject);
                response.on('end', () => resolve({ status: response.statusCode,
                    headers: response.headers, body: Buffer.concat(pieces) }));
            });
            request.on('error', reject);
            request.end(body);
        });
    }

    // As send, but any answer that is not 2xx is an error.
    async must(method, path, rest) {
        const answer = await this.send(method, path, rest);
        if (answer.status < 200 || answer.status > 299) {
            throw new Error(`${method} ${path} was answered ${answer.status}: ` +
                answer.body.toString('utf8', 0, 200));
        }
        return answer;
    }

    // Calls `work(i)` for 0 to count - 1, as many at once as there are connections.
    async each(count, work) {
        let next = 0;
        const lane = async () => {
            while (next < count) {
                await work(next++);
            }
        };
        await Promise.all(Array.from({ length: this.connections }, lane));
    }

    close() {
        this.agent.destroy();
    }
}
