// The test program tests/client/producer.c as a child process.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { BIN } from './server.mjs';
import { DEADLINE_MS, withDeadline } from './wait.mjs';

const beside = join(dirname(BIN), 'tests/client/producer');
const PROGRAM = existsSync(beside) ? beside : join(import.meta.dirname, '../../../build/tests/client/producer');

const alive = new Set();
export function stopProducers() {
    for (const child of alive) {
        child.kill('SIGKILL');
    }
}
process.on('exit', stopProducers);

export class Producer {
    constructor(base, name, id, options = {}) {
        const args = Object.entries(options).map(([key, value]) => `${key}=${value}`);
        this.failure = null;
        this.waiting = [];
        this.errors = '';
        this.child = spawn(PROGRAM, [`${base}/v1/stream/`, name, id, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
        alive.add(this.child);
        this.child.stdin.on('error', () => {});
        this.child.stderr.on('data', (chunk) => { this.errors += chunk; });
        createInterface({ input: this.child.stdout }).on('line', (line) => this.take(JSON.parse(line)));
        this.exited = new Promise((done) => {
            this.child.on('close', (code, signal) => {
                alive.delete(this.child);
                this.waiting.splice(0).forEach(({ fail }) => fail(new Error(`the producer ended: ${code ?? signal} ${this.errors}`)));
                done({ code, signal });
            });
        });
    }

    take(said) {
        if (said.failed === undefined) {
            this.waiting.shift().done(said);
        } else {
            this.failure = said;
        }
    }

    // Gives the answer to a command; commands wait for each other.
    tell(command, ms = DEADLINE_MS) {
        const answer = new Promise((done, fail) => this.waiting.push({ done, fail }));
        this.child.stdin.write(`${command}\n`);
        return withDeadline(answer, `answer to "${command}"`, ms);
    }

    // Insists on success.
    async good(command, ms) {
        const answer = await this.tell(command, ms);
        if (answer.code !== 'OK') {
            throw new Error(`${command}: ${JSON.stringify(answer)} ${this.errors}`);
        }
        return answer;
    }

    abort() {
        this.child.kill('SIGUSR1');
    }

    // Ends it, which must be in good order: a sanitizer's report shows here.
    async end() {
        this.child.stdin.end();
        const { code, signal } = await withDeadline(this.exited, 'end of the producer');
        if (code !== 0 || this.errors !== '') {
            throw new Error(`the producer ended: ${code ?? signal} ${this.errors}`);
        }
    }

    async stop() {
        this.child.kill('SIGKILL');
        await this.exited;
    }
}
