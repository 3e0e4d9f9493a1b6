// Tier 50: what the C library reads, seen through build/client-adapter: catching
// up, from offsets, by long-polls, by events, in text, JSON and bytes.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { Rig, Subject, refused, text, well } from './lib/adapter.mjs';
import { JSON_TYPE, OCTETS, TEXT } from './lib/http.mjs';

// Small pages, so that a read is more than one of them; short polls, so that some end without data.
const rig = await new Rig().start(['--read-page', '4096', '--long-poll-timeout', '300ms']);
after(() => rig.stop());

const LIVE = [['long-poll', 'long-poll'], ['events', 'sse'], ['auto', true]];

describe('catching up', () => {
    test('an empty stream', async () => {
        const answer = await (await rig.stream(TEXT)).reads('');
        assert.deepEqual([answer.status, answer.chunks, answer.upToDate, answer.streamClosed], [200, [], true, false]);
    });

    for (const [what, type, data] of [
        ['one piece', TEXT, ['Good day']],
        ['several pieces', TEXT, ['a ', 'b ', 'c']],
        ['bytes', OCTETS, [Buffer.from([1, 2, 3])]],
        ['bytes that are no text', OCTETS, [Buffer.from([0, 255, 254, 128])]],
        ['many scripts', 'text/plain; charset=utf-8', ['日本語 🎉 Ñoño']],
        ['more than a page', TEXT, ['x'.repeat(3000), 'y'.repeat(3000), 'z'.repeat(9000)]],
    ]) {
        test(what, async () => {
            const s = await rig.stream(type, ...data);
            const answer = await s.reads(Buffer.concat(data.map((d) => Buffer.from(d))));
            assert.deepEqual([answer.status, answer.upToDate, answer.streamClosed, answer.offset],
                             [200, true, false, s.offsets.at(-1)]);
        });
    }

    test('as often as one likes, with the same result', async () => {
        const s = await rig.stream(TEXT, 'stays');
        const first = await s.reads('stays');
        assert.match(first.headers.etag, /^(W\/)?".+"$/);
        assert.deepEqual(await s.reads('stays'), first);
        assert.deepEqual(await s.reads('stays'), first);
    });

    test('what was read stays as it was when more comes', async () => {
        const s = await rig.stream(TEXT, 'old');
        const { offset } = await s.reads('old');
        well(await s.append(' new'));
        await s.reads('old new');
        await s.reads(' new', { offset });
    });

    test('of a closed stream tells its end', async () => {
        const s = await rig.stream(TEXT, 'a', 'b');
        well(await s.close());
        const answer = await s.reads('ab');
        assert.deepEqual([answer.upToDate, answer.streamClosed], [true, true]);
    });

    test('a close is seen from the tail', async () => {
        const s = await rig.stream(TEXT, 'a');
        const { offset, streamClosed } = await s.reads('a');
        assert.equal(streamClosed, false);
        well(await s.close());
        const answer = await s.reads('', { offset });
        assert.deepEqual([answer.chunks, answer.upToDate, answer.streamClosed], [[], true, true]);
    });

    test('at most so many chunks, and on from there', async () => {
        const s = await rig.stream(TEXT, 'x'.repeat(4000), 'y'.repeat(4000));
        const first = well(await s.read({ maxChunks: 1 }));
        assert.equal(first.chunks.length, 1);
        assert.equal(first.upToDate, false);
        well(await s.append('end'));
        const rest = well(await s.read({ offset: first.offset }));
        assert.equal(text(first) + text(rest), `${'x'.repeat(4000)}${'y'.repeat(4000)}end`);
    });

    test('JSON comes as messages, as they were sent', async () => {
        const s = await rig.stream(JSON_TYPE, '{"a": 1.0}', '[[1, 2], "x"]', 'null');
        assert.deepEqual(JSON.parse(text(well(await s.read()))), [{ a: 1 }, [1, 2], 'x', null]);
    });

    test('JSON in more than a page', async () => {
        const messages = Array.from({ length: 500 }, (_, i) => ({ i, pad: '"],[{'.repeat(i % 9) }));
        const s = await rig.stream(JSON_TYPE, JSON.stringify(messages));
        const answer = well(await s.read());
        assert.deepEqual(answer.chunks.flatMap((chunk) => JSON.parse(chunk.data)), messages);
    });
});

describe('offsets', () => {
    for (const offset of [undefined, '-1']) {
        test(`${offset ?? 'none'}: from the beginning`, async () => {
            const s = await rig.stream(TEXT, 'one', 'two');
            assert.equal((await s.reads('onetwo', { offset })).offset, s.offsets[1]);
        });
    }

    test('of each append: what comes after it, exactly', async () => {
        const data = ['0123456789', 'abcdefghij', 'end'];
        const s = await rig.stream(TEXT, ...data);
        for (let i = 0; i < data.length; i++) {
            for (const live of [false, 'long-poll', 'sse', true]) {
                const answer = await s.reads(data.slice(i + 1).join(''),
                                             { offset: s.offsets[i], live, waitForUpToDate: true });
                assert.deepEqual([answer.offset, answer.upToDate], [s.offsets[2], true]);
            }
        }
    });

    test('at the tail: nothing, up to date', async () => {
        const s = await rig.stream(TEXT, 'x');
        const answer = await s.reads('', { offset: s.offsets[0] });
        assert.deepEqual([answer.chunks, answer.upToDate, answer.offset], [[], true, s.offsets[0]]);
    });

    test('of HEAD', async () => {
        const s = await rig.stream(TEXT, 'before');
        const offset = await s.tail();
        well(await s.append('after'));
        await s.reads('after', { offset });
    });

    test('of one client, in another', async () => {
        const s = await rig.stream(TEXT, 'first ', 'second');
        well(await rig.adapter.send({ type: 'init', serverUrl: `${rig.proxy.base}/v1/stream` }));
        assert.equal((await s.reads('second', { offset: s.offsets[0] })).upToDate, true);
    });

    test('the same one twice: the same data', async () => {
        const s = await rig.stream(TEXT, 'a', 'b');
        for (let i = 0; i < 3; i++) {
            await s.reads('b', { offset: s.offsets[0] });
        }
    });

    for (const data of [[], ['history']]) {
        test(`now, ${data.length ? 'behind history' : 'of an empty stream'}`, async () => {
            const s = await rig.stream(TEXT, ...data);
            const answer = await s.reads('', { offset: 'now' });
            assert.deepEqual([answer.chunks, answer.upToDate, answer.offset], [[], true, await s.tail()]);
            well(await s.append('future'));
            await s.reads('future', { offset: answer.offset });
        });

        test(`now, by long-poll, ${data.length ? 'behind history' : 'of an empty stream'}: waits at once`, async () => {
            const s = await rig.stream(TEXT, ...data);
            const answer = await s.reads('', { offset: 'now', live: 'long-poll', timeoutMs: 1500 });
            assert.deepEqual([answer.status, answer.chunks, answer.upToDate], [204, [], true]);
            well(await s.append('future'));
            await s.reads('future', { offset: answer.offset });
        });

        test(`now, by events, ${data.length ? 'behind history' : 'of an empty stream'}`, async () => {
            const s = await rig.stream(TEXT, ...data);
            const answer = await s.reads('', { offset: 'now', live: 'sse', waitForUpToDate: true });
            assert.deepEqual([answer.chunks, answer.upToDate], [[], true]);
            well(await s.append('future'));
            await s.reads('future', { offset: answer.offset });
        });
    }

    test('now is the tail', async () => {
        const s = await rig.stream(TEXT, 'x');
        assert.equal((await s.reads('x')).offset, (await s.reads('', { offset: 'now' })).offset);
    });

    for (const live of [false, 'long-poll', 'sse']) {
        for (const offset of ['this-is-no-offset', '0']) {
            test(`one that no server gave is refused, ${offset}, ${live || 'catching up'}`, async () => {
                const s = await rig.stream(TEXT, 'x');
                const answer = refused(await s.read({ offset, live }), 'INVALID_OFFSET', 400);
                assert.match(answer.message, /offset/);
                assert.equal(rig.proxy.seen(s.wire, 'GET').length, 1);
            });
        }
    }

    test('one beyond the tail brings nothing', async () => {
        const s = await rig.stream(TEXT, 'x');
        const answer = await s.read({ offset: 'ffffffffffffffff', timeoutMs: 1000 });
        assert.ok(answer.success === false || answer.chunks.length === 0, JSON.stringify(answer));
    });

    test('one that is none is refused before anything is sent', async () => {
        const s = await rig.stream(TEXT, 'x');
        for (const offset of ['a b', 'x'.repeat(200), 'a\nb']) {
            refused(await s.read({ offset }), 'INVALID_ARGUMENT', null);
        }
        assert.equal(rig.proxy.seen(s.wire, 'GET').length, 0);
    });
});

describe('live', () => {
    for (const [name, live] of LIVE) {
        describe(name, () => {
            test('begins with what is there, in order', async () => {
                const s = await rig.stream(TEXT, 'a', 'b', 'c');
                assert.equal((await s.reads('abc', { live, waitForUpToDate: true })).upToDate, true);
                assert.equal((await s.reads('abc', { live })).upToDate, true);
            });

            test('begins with more than a page', async () => {
                const s = await rig.stream(TEXT, 'x'.repeat(3000), 'y'.repeat(3000));
                await s.reads('x'.repeat(3000) + 'y'.repeat(3000), { live, waitForUpToDate: true });
            });

            test('an empty stream is up to date', async () => {
                const answer = await (await rig.stream(TEXT)).reads('', { live, waitForUpToDate: true });
                assert.deepEqual([answer.chunks, answer.upToDate], [[], true]);
            });

            test('an empty JSON stream is up to date', async () => {
                const answer = await (await rig.stream(JSON_TYPE)).reads('', { live, waitForUpToDate: true });
                assert.deepEqual([answer.chunks, answer.upToDate], [[], true]);
            });

            test('takes what comes later', async () => {
                const s = await rig.stream(TEXT, 'before');
                const { reading } = await s.listen(live, s.offsets[0]);
                const other = new Subject(rig, s.name);
                await append(other, TEXT, 'after');
                assert.equal(text(await reading), 'after');
            });

            test('takes several in order', async () => {
                const s = await rig.stream(TEXT, 'before');
                const { reading } = await s.listen(live, s.offsets[0], { maxChunks: undefined, timeoutMs: 3000 });
                for (const c of 'ABC') {
                    await append(s, TEXT, c);
                }
                const answer = await reading;
                const rest = await s.read({ offset: answer.offset });
                assert.equal(text(answer) + text(rest), 'ABC');
            });

            test('takes JSON that comes after an empty catch-up', async () => {
                const s = await rig.stream(JSON_TYPE, '{"id":0}');
                const { reading } = await s.listen(live, s.offsets[0]);
                await append(s, JSON_TYPE, '{"id":1}');
                assert.deepEqual(JSON.parse(text(await reading)), [{ id: 1 }]);
            });

            test('takes bytes that come later', async () => {
                const s = await rig.stream(OCTETS, Buffer.from('before'));
                const { reading } = await s.listen(live, s.offsets[0]);
                await append(s, OCTETS, Buffer.from([0, 255, 13, 10, 0]));
                assert.equal(text(await reading), '\0\xff\r\n\0');
            });

            test('from now: only what comes', async () => {
                const s = await rig.stream(OCTETS, Buffer.from('history'));
                const { reading } = await s.listen(live, 'now');
                await append(s, OCTETS, 'news');
                assert.equal(text(await reading), 'news');
            });

            test('without news it ends at its time, up to date', async () => {
                const s = await rig.stream(TEXT, 'x');
                const answer = await s.reads('', { live, offset: s.offsets[0], timeoutMs: 2000 });
                assert.deepEqual([answer.chunks, answer.upToDate, answer.offset], [[], true, s.offsets[0]]);
            });

            test('ends at the end of a closed stream', async () => {
                const s = await rig.stream(TEXT, 'x');
                well(await s.close());
                for (const offset of [undefined, s.offsets[0]]) {
                    const answer = await s.reads(offset ? '' : 'x', { live, offset });
                    assert.deepEqual([answer.upToDate, answer.streamClosed], [true, true]);
                }
            });

            test('takes the last message of a close', async () => {
                const s = await rig.stream(TEXT, 'x');
                const { reading } = await s.listen(live, s.offsets[0]);
                await append(s, TEXT, 'the end', { 'Stream-Closed': 'true' });
                const answer = await reading;
                assert.equal(text(answer), 'the end');
                assert.equal(answer.streamClosed, true);
            });

            test('a part of an open stream is no end of it', async () => {
                const s = await rig.stream(TEXT, 'x'.repeat(4000), 'y'.repeat(4000));
                const part = well(await s.read({ live, maxChunks: 1 }));
                assert.equal(part.streamClosed, false);
                const rest = well(await s.read({ offset: part.offset }));
                assert.deepEqual([rest.upToDate, rest.streamClosed], [true, false]);
                assert.equal(text(part) + text(rest), 'x'.repeat(4000) + 'y'.repeat(4000));
            });
        });
    }

    test('all ways bring the same', async () => {
        for (const [type, data] of [[TEXT, ['one\r\n', 'two\n\n', ' three']], [OCTETS, ['bytes']], [JSON_TYPE, ['[1,"x"]', '{}']]]) {
            const s = await rig.stream(type, ...data);
            const all = text(await s.read());
            for (const [, live] of LIVE) {
                assert.equal(text(await s.follow(live)), all);
                assert.equal(text(await s.follow(live, { offset: s.offsets[0] })),
                             text(await s.read({ offset: s.offsets[0] })));
            }
        }
    });
});

// Past the adapter, which is busy reading: straight to the server.
async function append(s, type, body, headers = {}) {
    const reply = await fetch(`${rig.server.base}${s.wire}`, {
        method: 'POST', body, headers: { 'Content-Type': type, ...headers },
    });
    assert.equal(reply.status, 204, await reply.text());
}

// What the adapter makes of several appends: of JSON an array of their messages.
function whole(type, parts) {
    const inner = type === JSON_TYPE ? parts.map((part) => part.toString().replace(/^\[(.*)\]$/, '$1')) : parts;
    const all = inner.map((part) => Buffer.from(part).toString('latin1'));
    return type === JSON_TYPE ? `[${all.join(',')}]` : all.join('');
}

// Each is read twice: as what was there before, which comes as a page, and as what
// comes while events are read.
async function byEvents(type, ...data) {
    const bytes = data.map((d) => Buffer.from(d));
    const s = await rig.stream(type, ...bytes);
    assert.equal(text(await s.follow('sse')), whole(type, bytes));
    const live = await rig.stream(type);
    let offset = await live.tail();
    for (const one of bytes) {
        const { reading } = await live.listen('sse', offset);
        await append(live, type, one);
        const answer = await reading;
        assert.equal(text(answer), whole(type, [one]));
        offset = answer.offset;
    }
}

describe('events carry text', () => {
    for (const [what, data] of [
        ['U+0085, which is no end of a line', 'before\u0085after'],
        ['U+2028', 'hello\u2028world'],
        ['U+2029', 'one\u2029two'],
        ['all of these', 'a\u0085b\u2028c\u2029d'],
        ['spaces in front', '  two of them'],
        ['one space', ' '],
        ['colons and words of the format', 'data: x\nevent: control\nid: 7'],
        ['ends of lines', 'a\nb\n\nc\n'],
        ['a byte-order mark', '\ufeffx'],
    ]) {
        test(what, () => byEvents(TEXT, data));
    }
});

describe('events carry bytes', () => {
    const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const lines = Array.from({ length: 56 }, (_, i) => `line ${i}: the quick brown fox jumps over the lazy dog 0123456789`).join('\n');

    for (const [what, ...data] of [
        ['a text', 'Hello World'],
        ['lines', 'Line 1\nLine 2\nLine 3'],
        ['three appends', 'first', 'second', 'third'],
        ['printable ASCII', every.subarray(32, 127)],
        ['what looks like JSON', '{"key":"value","num":42}'],
        ['bytes of all sorts', Buffer.from([0, 255, 254, 253, 252])],
        ['every byte there is', every],
        ['1 KiB', Buffer.concat([every, every, every, every])],
        ['4 KiB of lines', lines],
        ['a NUL', Buffer.from([0])],
        ['one byte', 'f'],
        ['two bytes', 'fo'],
        ['three bytes', 'foo'],
        ['six bytes', 'foobar'],
        ['each length of padding', 'a', 'ab', 'abc'],
        ['ten short ones', ...Array.from({ length: 10 }, (_, i) => Buffer.from([3 * i, 3 * i + 1, 3 * i + 2]))],
    ]) {
        test(what, () => byEvents(OCTETS, ...data));
    }

    for (const type of ['application/x-protobuf', 'image/png', 'application/x-ndjson']) {
        test(type, () => byEvents(type, Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])));
    }

    test('an empty stream of bytes is up to date', async () => {
        assert.equal((await (await rig.stream(OCTETS)).reads('', { live: 'sse', waitForUpToDate: true })).upToDate, true);
    });

    test('on from an offset, over a connection of its own', async () => {
        const s = await rig.stream(OCTETS, Buffer.from([0, 0, 0]), Buffer.from([255, 255]));
        const first = well(await s.read({ live: 'sse', maxChunks: 1 }));
        assert.ok(text(first).startsWith('\0\0\0'));
        assert.equal(text(await s.follow('sse', { offset: s.offsets[0] })), '\xff\xff');
    });
});

describe('events carry JSON', () => {
    for (const [what, message] of [
        ['an object', '{"a": [1, {"b": null}]}'], ['an array', '[[1, 2]]'], ['a number', '-1.5e3'],
        ['a text with brackets', '"],[{\\""'], ['a text with line separators', '"a\u2028b\u0085c"'],
    ]) {
        test(what, () => byEvents(JSON_TYPE, message));
    }
});
