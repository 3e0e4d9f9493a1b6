// The program on a terminal: a real one (lib/pty.c) behind which an emulator, that of xterm.js, says what people would see.
import { spawn, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { BIN, tempDir } from './server.mjs';
import { DEADLINE_MS, withDeadline } from './wait.mjs';

const require = createRequire(new URL('../../conformance/package.json', import.meta.url));
const { Terminal: Emulator } = require('@xterm/headless');

let helper;
const alive = new Set();
process.on('exit', () => alive.forEach((child) => child.kill('SIGKILL')));

function buildHelper() {
    const dir = tempDir();
    process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
    const program = join(dir, 'pty');
    const built = spawnSync('cc', ['-O1', '-o', program, new URL('pty.c', import.meta.url).pathname, '-lutil'], { encoding: 'utf8' });
    if (built.status !== 0) {
        throw new Error(`cc: ${built.stderr ?? built.error}`);
    }
    return program;
}

export class Terminal {
    // Starts arbe with `args` on a terminal of that size.
    constructor(args, { columns = 80, rows = 24, env = {} } = {}) {
        helper ??= buildHelper();
        const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(ARBE_|XDG_|NO_COLOR|LANG|LC_)/.test(name)));
        this.what = args.join(' ');
        this.emulator = new Emulator({ cols: columns, rows, allowProposedApi: true, scrollback: 100 });
        this.child = spawn(helper, [String(columns), String(rows), BIN, ...args], {
            stdio: ['pipe', 'pipe', 'inherit', 'pipe'], env: { ...own, HOME: '/nonexistent', TERM: 'xterm-256color', ...env },
        });
        alive.add(this.child);
        this.raw = '';
        this.told = []; // lines of lib/pty.c
        this.watchers = new Set();
        this.child.stdin.on('error', () => {});
        this.child.stdout.on('data', (bytes) => {
            this.raw += bytes.toString('latin1');
            this.emulator.write(bytes, () => this.wake());
        });
        let rest = '';
        this.child.stdio[3].on('data', (bytes) => {
            const lines = (rest + bytes).split('\n');
            rest = lines.pop();
            this.told.push(...lines);
            this.wake();
        });
        this.closed = new Promise((done) => this.child.on('close', () => {
            alive.delete(this.child);
            this.emulator.write('', () => done(this.wake()));
        }));
    }

    wake() {
        this.watchers.forEach((look) => look());
    }

    // What one sees, a text with a line end behind each row that is not below the last one with something in it.
    get screen() {
        const { active } = this.emulator.buffer;
        const rows = Array.from({ length: this.emulator.rows }, (_, i) => active.getLine(active.baseY + i).translateToString(true));
        return rows.map((row) => row.trimEnd()).join('\n').trimEnd();
    }

    // Whether the screen is the program's own, and where the cursor is to be seen.
    get isOwn() {
        return this.emulator.buffer.active.type === 'alternate';
    }

    get hasCursor() {
        return !this.emulator._core.coreService.isCursorHidden;
    }

    // The cell in which `text` begins.
    cellOf(text) {
        const { active } = this.emulator.buffer;
        const row = this.screen.split('\n').findIndex((line) => line.includes(text));
        return row < 0 ? undefined : active.getLine(active.baseY + row).getCell(active.getLine(active.baseY + row).translateToString().indexOf(text));
    }

    // Waits until probe(this) is true; a text or an expression means that the screen has it.
    async until(wanted, ms = DEADLINE_MS) {
        const probe = typeof wanted === 'function' ? wanted
            : ({ screen }) => (typeof wanted === 'string' ? screen.includes(wanted) : wanted.test(screen));
        let look;
        const seen = new Promise((done) => {
            look = () => probe(this) && done();
            this.watchers.add(look);
            look();
        });
        try {
            await withDeadline(seen, `${wanted} on the terminal of ${this.what}`, ms);
        } catch (error) {
            throw new Error(`${error.message}; there is:\n${this.screen}\n${this.told.join('\n')}`);
        } finally {
            this.watchers.delete(look);
        }
    }

    // Waits until the screen is just that.
    async shows(screen) {
        await this.until((terminal) => terminal.screen === screen).catch((error) => {
            throw new Error(`${error.message}\ninstead of:\n${screen}`);
        });
    }

    tell(line) {
        this.child.stdin.write(`${line}\n`);
    }

    type(text) {
        this.tell(`type ${Buffer.from(text).toString('hex')}`);
    }

    resize(columns, rows) {
        this.emulator.resize(columns, rows);
        this.tell(`size ${columns} ${rows}`);
    }

    signal(name) {
        this.tell(`signal ${constants.signals[name]}`);
    }

    // Nobody reads the terminal any more, until go().
    hold() {
        this.tell('hold');
    }

    go() {
        this.tell('go');
    }

    // Closes the window.
    hangUp() {
        this.child.stdin.end();
    }

    // Waits for the end: what became of the program, and of the settings of the terminal ("exit 0 same").
    async end(ms = DEADLINE_MS) {
        await withDeadline(this.closed, `end of ${this.what}`, ms).catch((error) => {
            throw new Error(`${error.message}; there is:\n${this.screen}\n${this.told.join('\n')}`);
        });
        return this.told.at(-1);
    }

    // What a test leaves behind.
    dispose() {
        this.child.stdin.end();
        return this.closed;
    }
}
