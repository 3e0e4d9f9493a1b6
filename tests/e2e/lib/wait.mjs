// Waiting for events with a generous deadline. The suite also runs against
// sanitizer builds on two busy cores, so a deadline only ever says "hung".
import { setTimeout as sleep } from 'node:timers/promises';

export const SANITIZER = process.env.ARBE_SANITIZER || process.env.ARBE_SAN || '';
export const DEADLINE_MS = SANITIZER ? 90_000 : 30_000;

// Repetition counts shrink under a sanitizer; the cases stay the same.
export function rounds(count) {
    return SANITIZER ? Math.max(4, Math.ceil(count / 5)) : count;
}

export function withDeadline(promise, what, ms = DEADLINE_MS) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no ${what} within ${ms} ms`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Asks again and again until probe() gives something truthy. For things that
// have no event of their own, such as asynchronous clean-up.
export async function eventually(what, probe, { ms = DEADLINE_MS, every = 10 } = {}) {
    const end = Date.now() + ms;
    for (;;) {
        const value = await probe();
        if (value) {
            return value;
        }
        if (Date.now() > end) {
            throw new Error(`${what}: still not so after ${ms} ms`);
        }
        await sleep(every);
    }
}

export { sleep };

// A small seeded generator, so that a failing random run can be repeated.
export function randomFrom(seed) {
    let state = seed >>> 0 || 1;
    const next = () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let x = Math.imul(state ^ (state >>> 15), state | 1);
        x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
        return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    };
    return {
        next,
        below: (n) => Math.floor(next() * n),
        between: (low, high) => low + Math.floor(next() * (high - low + 1)),
        pick: (list) => list[Math.floor(next() * list.length)],
    };
}

// Runs at most `width` of the tasks at a time and gives their results in order.
export async function inParallel(width, tasks) {
    const results = new Array(tasks.length);
    let at = 0;
    const lane = async () => {
        while (at < tasks.length) {
            const i = at++;
            results[i] = await tasks[i]();
        }
    };
    await Promise.all(Array.from({ length: Math.min(width, tasks.length) }, lane));
    return results;
}
