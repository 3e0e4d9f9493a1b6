// Tier 20: what may stand in offset=, live= and cursor=, and that one answer
// is one instant (B1 to B8, G7, R1).
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, uniqueName } from './lib/http.mjs';
import { exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { rounds } from './lib/wait.mjs';

const server = await startServer(['--long-poll-timeout', '60ms']);
after(() => server.dispose());

async function freshStream(type = TEXT, body, headers) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

const MODES = ['', '&live=long-poll', '&live=sse'];

// The status of one raw query, whatever the mode; SSE is cut after the head.
async function statusOf(stream, query) {
    const { socket, ...first } = await headOf(stream, query);
    socket.destroy();
    return first.status;
}

async function headOf(stream, query) {
    const { Raw } = await import('./lib/raw.mjs');
    const raw = await Raw.open(stream.server);
    raw.send(head('GET', `${stream.path}?${query}`));
    return { ...(await raw.head()), socket: raw };
}

describe('B4: malformed offsets', () => {
    const bad = {
        empty: '', comma: 'a,b', 'encoded comma': 'a%2Cb', 'encoded ampersand': 'a%26b', 'equals sign': 'a=b',
        'encoded equals': 'a%3Db', 'question mark': 'a?b', 'encoded question mark': 'a%3Fb', slash: 'a/b',
        'encoded slash': 'a%2Fb', space: '%20', 'plus as space': '+', newline: '%0a', CRLF: '%0d%0a', NUL: '%00',
        'minus two': '-2', 'minus minus one': '--1', 'hex': '0x10', 'fullwidth digit': '%EF%BC%91',
        'ten KiB would be 414, one KiB': 'a'.repeat(1024), 'minus': '-', 'minus zero': '-0', 'minus one point': '-1.0',
        'NOW': 'NOW', 'Now': 'Now', 'now and a space': 'now%20', 'nowx': 'nowx', 'plus one': '%2B1', 'letters': 'abc',
        'one': '1', 'zero': '0', 'quote': '%22', 'percent': '%25', 'bad escape': '%zz', 'lone percent': '%',
        'invalid UTF-8': '%ff', 'dot dot': '..', 'negative inside': '-1_-1', 'wildcard': '*', 'null': 'null',
        'undefined': 'undefined', 'NaN': 'NaN', 'Infinity': 'Infinity', 'minus eleven': '-11', 'minus 1 twice': '-1-1',
        'a semicolon': '-1;x',
    };
    for (const [name, token] of Object.entries(bad)) {
        test(`B4: ${name} is 400 in every mode`, async () => {
            for (const type of [TEXT, JSON_TYPE]) {
                const stream = await freshStream(type, type === JSON_TYPE ? '[1]' : 'x');
                for (const mode of MODES) {
                    assert.equal(await statusOf(stream, `offset=${token}${mode}`), 400, mode);
                }
            }
        });
    }

    test('B4: a ten KiB token is 400 or 414', async () => {
        const stream = await freshStream();
        for (const mode of MODES) {
            assert.ok([400, 414].includes(await statusOf(stream, `offset=${'1'.repeat(10_240)}${mode}`)));
        }
    });

    test('B4: mutations of a true token give the same status in all modes and no 5xx', async () => {
        const stream = await freshStream(JSON_TYPE, '[1,2,3]');
        const { next } = await stream.head();
        const mutants = new Set();
        for (let i = 0; i < next.length; i++) {
            for (const c of '0199af_-Zz~.') {
                mutants.add(next.slice(0, i) + c + next.slice(i + 1));
            }
            mutants.add(next.slice(0, i) + next.slice(i + 1));
            mutants.add(`${next.slice(0, i)}0${next.slice(i)}`);
        }
        mutants.delete(next);
        for (const token of mutants) {
            const [catchUp, poll, sse] = await Promise.all(MODES.map((mode) => statusOf(stream, `offset=${token}${mode}`)));
            assert.ok([200, 400].includes(catchUp), `${token}: ${catchUp}`);
            if (catchUp === 400) {
                assert.deepEqual([poll, sse], [400, 400], token);
            } else {
                assert.ok([200, 204].includes(poll), `${token}: ${poll}`);
                assert.equal(sse, 200, token);
                assert.doesNotThrow(() => JSON.parse('[]'));
            }
        }
        assert.equal((await stream.get()).text, '[1,2,3]');
    });

    test('B8: huge numbers do not wrap', async () => {
        const stream = await freshStream(TEXT, 'abcdef');
        const { next } = await stream.head();
        const tokens = ['9999999999999999_9999999999999999', '9'.repeat(40), '18446744073709551616',
                        '18446744073709551615', '9223372036854775807', '9223372036854775808', '4294967296',
                        next.replace(/[0-9a-f]/gi, '9'), next.replace(/[0-9a-f]/gi, 'f'),
                        next.replace(/[0-9]/g, '7'), '9'.repeat(next.length), 'f'.repeat(next.length),
                        'z'.repeat(next.length)];
        for (const token of tokens) {
            const reply = await stream.get(`offset=${token}`);
            assert.ok([200, 400].includes(reply.status), `${token}: ${reply.status}`);
            if (reply.status === 200) {
                assert.equal(reply.text, '', token);
            }
        }
    });
});

describe('B: places that are not at a boundary, and beyond', () => {
    // Tokens are fixed-width text; the next one up or down is made by counting its last digit.
    const step = (token, by) => {
        const digits = /[0-9]+$/.exec(token)[0];
        const value = (BigInt(digits) + BigInt(by)).toString().padStart(digits.length, '0');
        return token.slice(0, token.length - digits.length) + value;
    };

    test('B1: off by one: the same answer in all modes, never a 5xx, nothing corrupted', async () => {
        for (const type of [TEXT, OCTETS, JSON_TYPE]) {
            const stream = await freshStream(type);
            const { next } = await stream.append(type === JSON_TYPE ? '[10,20]' : 'abcdef');
            await stream.append(type === JSON_TYPE ? '[30]' : 'ghi');
            for (const by of [-1, 1]) {
                const token = step(next, by);
                const reply = await stream.get(`offset=${token}`);
                assert.ok([200, 400].includes(reply.status), `${type} ${by}: ${reply.status}`);
                const wanted = reply.status === 400 ? [400, 400] : [200, 200];
                assert.deepEqual([await statusOf(stream, `offset=${token}&live=long-poll`),
                                  await statusOf(stream, `offset=${token}&live=sse`)], wanted);
                if (type === JSON_TYPE) {
                    assert.equal(reply.status, 400, 'inside a message');
                } else if (reply.status === 200) {
                    assert.equal(reply.text, by < 0 ? 'fghi' : 'hi');
                }
            }
            assert.equal((await stream.get()).text, type === JSON_TYPE ? '[10,20,30]' : 'abcdefghi');
        }
    });

    test('B2: beyond the tail: empty and up to date, long-poll waits, SSE waits', async () => {
        const long = await freshStream(TEXT, 'x'.repeat(5000));
        const beyond = (await long.head()).next;
        for (const type of [TEXT, JSON_TYPE, OCTETS]) {
            const stream = await freshStream(type, type === JSON_TYPE ? '[1]' : 'x');
            const tail = (await stream.head()).next;
            const reply = await stream.from(beyond);
            if (reply.status === 400) {
                assert.fail('B2: a well-formed token beyond the tail is 200');
            }
            assert.equal(reply.status, 200);
            assert.equal(reply.text, type === JSON_TYPE ? '[]' : '');
            assert.ok(reply.upToDate);
            const poll = await stream.poll(beyond);
            assert.equal(poll.status, 204);
            assert.ok(poll.upToDate);
            const sse = await Sse.open(stream, beyond);
            assert.equal(sse.status, 200);
            const control = await sse.control();
            assert.ok(control.upToDate);
            sse.close();
            assert.equal((await stream.head()).next, tail);
        }
    });

    test('B7: an offset of another stream is a defined read', async () => {
        const big = await freshStream(TEXT, 'x'.repeat(100_000));
        const small = await freshStream(TEXT, 'y');
        const reply = await small.from((await big.head()).next);
        assert.equal(reply.status, 200);
        assert.equal(reply.text, '');
        const back = await big.from((await small.head()).next);
        assert.equal(back.status, 200);
        assert.equal(back.text.length, 99_999);
    });

    test('B2: beyond the tail of an empty and of a closed stream', async () => {
        const far = (await (await freshStream(TEXT, 'x'.repeat(100))).head()).next;
        const empty = await freshStream();
        assert.equal((await empty.from(far)).text, '');
        await empty.close();
        for (const reply of [await empty.from(far), await empty.poll(far)]) {
            assert.ok([200, 204].includes(reply.status));
            assert.ok(reply.upToDate);
        }
    });

    test('B2: a follower that was beyond the tail gets no wrong bytes later', async () => {
        const far = (await (await freshStream(TEXT, 'x'.repeat(10))).head()).next;
        const stream = await freshStream(TEXT, '12345');
        await stream.append('67890');
        await stream.append('abc');
        assert.equal((await stream.from(far)).text, 'abc');
    });
});

describe('B5: offset=now and -1', () => {
    test('B5: now on an open, an empty, a JSON, a closed and a missing stream', async () => {
        const cases = [[TEXT, 'x', ''], [TEXT, undefined, ''], [JSON_TYPE, '[1]', '[]'], [JSON_TYPE, undefined, '[]'],
                       [OCTETS, 'x', '']];
        for (const [type, body, text] of cases) {
            for (const closed of [false, true]) {
                const stream = await freshStream(type, body, closed ? { 'Stream-Closed': 'true' } : {});
                const reply = await stream.get('offset=now');
                assert.equal(reply.status, 200);
                assert.equal(reply.text, text);
                assert.equal(reply.next, (await stream.head()).next);
                assert.ok(reply.upToDate);
                assert.equal(reply.closed, closed);
                assert.match(reply.headers['cache-control'], /no-store/);
                assert.equal(reply.headers.etag, undefined);
            }
        }
        const missing = new Stream(server, uniqueName('missing'));
        for (const mode of MODES) {
            assert.equal(await statusOf(missing, `offset=now${mode}`), 404);
        }
    });

    test('B5: now with long-poll waits for new data only', async () => {
        const stream = await freshStream(TEXT, 'old');
        const timeout = await stream.poll('now');
        assert.equal(timeout.status, 204);
        assert.equal(timeout.next, (await stream.head()).next);
        let reply;
        do {
            const waiting = stream.poll('now');
            await stream.append('new');
            reply = await waiting;
            // The append may have come before the poll was there.
        } while (reply.status === 204);
        assert.match(reply.text, /^(new)+$/);
        assert.equal(reply.next, (await stream.head()).next);
    });

    test('B5: now with SSE starts with a control event and sends no history', async () => {
        const stream = await freshStream(TEXT, 'old');
        const sse = await Sse.open(stream, 'now');
        const control = await sse.control();
        assert.equal(control.streamNextOffset, (await stream.head()).next);
        assert.equal(control.upToDate, true);
        await stream.append('new');
        assert.equal(await sse.data(), 'new');
        sse.close();
    });

    test('B5: now on a closed stream ends at once in both live modes', async () => {
        const stream = await freshStream(TEXT, 'x', { 'Stream-Closed': 'true' });
        const poll = await stream.poll('now');
        assert.equal(poll.status, 204);
        assert.ok(poll.closed && poll.upToDate);
        const sse = await Sse.open(stream, 'now');
        const control = await sse.control();
        assert.ok(control.streamClosed && control.upToDate);
        await sse.end();
        assert.equal(sse.events.length, 1);
    });

    test('B5: -1, no offset and the first token are the same place', async () => {
        const stream = await freshStream();
        const first = (await stream.head()).next;
        await stream.append('abc');
        for (const query of ['', 'offset=-1', `offset=${first}`, 'offset=%2D1']) {
            assert.equal((await stream.get(query)).text, 'abc', query);
        }
    });
});

describe('G7: queries', () => {
    test('G7: order does not matter, unknown parameters are ignored', async () => {
        const stream = await freshStream(TEXT, 'abc');
        const { next } = await stream.head();
        await stream.append('def');
        const queries = [`offset=${next}`, `cursor=5&offset=${next}`, `offset=${next}&cursor=5`,
                         `a=b&offset=${next}&z`, `z&&offset=${next}&`, `&offset=${next}`, `offset=${next}&Offset=x`,
                         `offset=${next}&offsets=x&=y&=`, `live2=sse&offset=${next}`, `offset=${next}&%6Cive2=x`,
                         `%6Fffset=${next}`, `live=long-poll&offset=${next}`, `cursor=1&live=long-poll&offset=${next}`];
        for (const query of queries) {
            const reply = await stream.get(query);
            assert.equal(reply.status, 200, query);
            assert.equal(reply.text, 'def', query);
        }
    });

    test('G7: a doubled offset, live or an unknown live mode is 400', async () => {
        const stream = await freshStream(TEXT, 'abc');
        for (const query of ['offset=-1&offset=-1', 'offset=-1&offset=now', 'offset=-1&live=', 'offset=-1&live=true',
                             'offset=-1&live=LONG-POLL', 'offset=-1&live=ws', 'offset=-1&live=sse&live=long-poll',
                             'live=long-poll', 'live=sse', 'live=', 'offset=-1&live', 'offset=-1&live=sse%20',
                             'offset', 'offset&live=sse', 'offset=-1&%6Cive=bad', 'offset=-1&%6Fffset=-1']) {
            assert.equal(await statusOf(stream, query), 400, query);
        }
    });
});

describe('R1: one answer is one instant', () => {
    test('R1: chained catch-up reads during appends join to the stream', async () => {
        const stream = await freshStream();
        const count = rounds(300);
        let done = false;
        const writing = (async () => {
            for (let i = 0; i < count; i++) {
                await stream.append(`${String(i).padStart(5, '0')};`);
            }
            await stream.append('end', { 'Stream-Closed': 'true' });
            done = true;
        })();
        const readers = Array.from({ length: 4 }, async () => {
            const parts = [];
            let offset = '-1';
            for (;;) {
                const wasDone = done;
                const reply = await stream.from(offset);
                const head = await stream.head();
                assert.ok(head.next >= reply.next);
                parts.push(reply.text);
                offset = reply.next;
                if (reply.closed) {
                    assert.ok(reply.upToDate);
                    break;
                }
                assert.ok(!wasDone, 'a closed stream says so at its end');
            }
            return parts.join('');
        });
        const texts = await Promise.all(readers);
        await writing;
        const whole = (await stream.get()).text;
        for (const text of texts) {
            assert.equal(text, whole);
        }
    });

    test('R1: next always fits the bytes of its own answer', async () => {
        const stream = await freshStream(OCTETS);
        const ends = new Map([[(await stream.head()).next, 0]]);
        let total = 0;
        let stop = false;
        const seen = [];
        const reading = Promise.all([1, 2, 3].map(async () => {
            while (!stop) {
                const reply = await stream.get();
                seen.push([reply.next, reply.body.length, reply.upToDate]);
            }
        }));
        for (let i = 0; i < rounds(200); i++) {
            const size = 1 + (i * 37) % 500;
            total += size;
            ends.set((await stream.append(Buffer.alloc(size, i))).next, total);
        }
        stop = true;
        await reading;
        for (const [next, length, upToDate] of seen) {
            assert.equal(ends.get(next), length, next);
            assert.ok(upToDate);
        }
    });
});

test('B4: HEAD takes no notice of a query', async () => {
    const stream = await freshStream(TEXT, 'x');
    const reply = await exchange(server, head('HEAD', `${stream.path}?offset=-1`), 'HEAD');
    assert.equal(reply.status, 200);
});
