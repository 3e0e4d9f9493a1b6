// Tier 20: TTL, Expires-At, delete and recreate (I), with real but short waits
// that run side by side.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, producer, uniqueName } from './lib/http.mjs';
import { Raw, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually, rounds, sleep } from './lib/wait.mjs';

const server = await startServer(['--long-poll-timeout', '100ms']);
after(() => server.dispose());

function named(type = TEXT) {
    return new Stream(server, uniqueName(), type);
}

async function ttlStream(seconds, body, type) {
    const stream = named(type);
    await stream.create({ 'Stream-TTL': String(seconds) }, body);
    return stream;
}

// Real time on a busy machine: the attempt says "late" when it was too slow for what it wanted to show, and is made
// again. Whatever it asserts is true at any speed.
async function inTime(attempt) {
    for (let tries = 0; tries < 8; tries++) {
        if (await attempt() !== 'late') {
            return;
        }
    }
    throw new Error('this machine is too slow for the test: late eight times');
}

const soon = (ms) => new Date(Date.now() + ms).toISOString();

describe('I2: syntax of TTL and Expires-At', { concurrency: true }, () => {
    test('I2: malformed TTLs are 400', async () => {
        for (const value of ['+60', '060', '00', '60.0', '6e1', '-1', '-0', '6 0', '', ' ', 'abc', '0x10', '1s', '６０', '1,2',
                             '60;', 'Infinity', 'NaN', 'null', '9'.repeat(20), '9'.repeat(40), '9007199254740993000',
                             '1_000', '١', '"60"', '60 60', '999999999999999999']) {
            const raw = await Raw.open(server);
            raw.send(head('PUT', named().path, [`Stream-TTL: ${Buffer.from(value).toString('latin1')}`, 'Content-Length: 0']));
            const reply = await raw.response();
            raw.destroy();
            assert.equal(reply.status, 400, value);
        }
    });

    test('R5: a huge TTL is 400 or never, also after a restart and on renewal', async () => {
        for (const value of ['18446744073709551615', '18446744073709551616', '9223372036854775807', '9007199254740992',
                             '9007199254740991', '9223372036854775', '4294967296', '4294967295', '2147483648',
                             '3155760000', '18446744073709551']) {
            const stream = named();
            const reply = await stream.put({ 'Stream-TTL': value });
            assert.ok([201, 400].includes(reply.status), `${value}: ${reply.status}`);
            if (reply.status === 201) {
                await stream.append('x');
                assert.equal((await stream.get()).text, 'x', value);
                assert.equal((await stream.head()).headers['stream-ttl'], value);
            } else {
                assert.equal((await stream.head()).status, 404);
            }
        }
    });

    test('I2: TTL 0 is valid and expires at once', async () => {
        const stream = named();
        assert.equal((await stream.put({ 'Stream-TTL': '0' }, 'x')).status, 201);
        assert.equal((await stream.get()).status, 404);
        assert.equal((await stream.post('x')).status, 404);
        assert.equal((await stream.head()).status, 404);
        assert.equal((await stream.put()).status, 201);
        assert.equal((await stream.get()).text, '');
    });

    test('I2: both TTL and Expires-At are 400', async () => {
        const stream = named();
        const reply = await stream.put({ 'Stream-TTL': '60', 'Stream-Expires-At': '2099-01-01T00:00:00Z' });
        assert.equal(reply.status, 400);
        assert.equal((await stream.head()).status, 404);
    });

    test('I2: Expires-At is RFC 3339 and nothing else', async () => {
        const good = ['2099-01-01T00:00:00Z', '2099-01-01t00:00:00z', '2099-12-31T23:59:59.999Z', '2099-06-01T12:00:00+02:00',
                      '2099-06-01T12:00:00.123456789-11:30', '2096-02-29T00:00:00Z', '9999-12-31T23:59:59Z'];
        for (const value of good) {
            const stream = named();
            assert.equal((await stream.put({ 'Stream-Expires-At': value })).status, 201, value);
            const shown = (await stream.head()).headers['stream-expires-at'];
            assert.ok(Math.abs(Date.parse(shown) - Date.parse(value.toUpperCase())) < 1, `${value}: ${shown}`);
        }
        const bad = ['tomorrow', '2099-01-01', '2099-01-01T00:00:00', '2099-13-01T00:00:00Z', '2099-02-29T00:00:00Z',
                     '2099-01-32T00:00:00Z', '2099-01-01T24:00:01Z', '2099-01-01T00:60:00Z', '2099-01-01T00:00:61Z', '',
                     '4102444800', '99-01-01T00:00:00Z', '2099-1-1T0:0:0Z', '2099-01-01T00:00:00+25:00', '2099-01-01T00:00:00Zx',
                     'x2099-01-01T00:00:00Z', '2099-01-01T00:00:00.Z', '+2099-01-01T00:00:00Z', '12099-01-01T00:00:00Z',
                     '2099-00-01T00:00:00Z', '2099-01-00T00:00:00Z', 'Thu, 01 Jan 2099 00:00:00 GMT', '2099/01/01T00:00:00Z'];
        for (const value of bad) {
            assert.equal((await named().put({ 'Stream-Expires-At': value })).status, 400, value);
        }
    });

    test('I2: an Expires-At in the past makes a stream that is gone', async () => {
        const stream = named();
        const reply = await stream.put({ 'Stream-Expires-At': '2001-01-01T00:00:00Z' });
        assert.ok([201, 400].includes(reply.status));
        assert.equal((await stream.head()).status, 404);
        assert.equal((await stream.get()).status, 404);
        assert.equal((await stream.put()).status, 201);
    });

    test('I7: HEAD gives TTL or Expires-At back', async () => {
        const ttl = await ttlStream(600);
        assert.equal((await ttl.head()).headers['stream-ttl'], '600');
        assert.equal((await ttl.head()).headers['stream-expires-at'], undefined);
        const at = named();
        await at.create({ 'Stream-Expires-At': '2099-01-01T00:00:00Z' });
        assert.equal(Date.parse((await at.head()).headers['stream-expires-at']), Date.parse('2099-01-01T00:00:00Z'));
        const none = named();
        await none.create();
        assert.equal((await none.head()).headers['stream-ttl'], undefined);
        assert.equal((await none.head()).headers['stream-expires-at'], undefined);
    });
});

describe('I: expiry in real time', { concurrency: true }, () => {
    test('I1: an expired stream is 404 everywhere and can be made anew', async () => {
        const old = named();
        const { next } = await old.create({ 'Stream-TTL': '1' }, 'old');
        const other = await ttlStream(1, '[1]', JSON_TYPE);
        const waitFor = await ttlStream(1, 'x');
        await sleep(1600);
        for (const reply of [await old.get(), await old.head(), await old.post('x'), await old.remove(), await old.close(),
                             await old.poll(next), await old.get('offset=-1&live=sse'), await old.from(next)]) {
            assert.equal(reply.status, 404);
        }
        const again = await old.put({ 'Content-Type': JSON_TYPE });
        assert.equal(again.status, 201);
        const read = await old.get();
        assert.equal(read.text, '[]');
        assert.equal((await old.head()).headers['stream-ttl'], undefined);
        assert.equal((await other.put({ 'Content-Type': TEXT }, 'new')).status, 201, 'created without a look before');
        assert.equal((await other.get()).text, 'new');
        assert.equal((await waitFor.post('x')).status, 404, 'an append does not revive it');
        assert.equal((await waitFor.put({ 'Stream-TTL': '60' })).status, 201);
        assert.equal((await waitFor.get()).text, '');
    });

    test('I1: a recreated stream has no writer state of the old one', async () => {
        const stream = named();
        await inTime(async () => {
            await stream.create({ 'Stream-TTL': '1' });
            const { status } = await stream.post('a', { ...producer('p', 5, 0), 'Stream-Seq': 'z' });
            await sleep(1600);
            return status === 200 ? 'good' : 'late';
        });
        await stream.create();
        assert.equal((await stream.post('b', { ...producer('p', 0, 0), 'Stream-Seq': 'a' })).status, 200);
        assert.equal((await stream.get()).text, 'b');
    });

    // Every kind of touch at 1.1 s of a 2 s TTL, looked at by HEAD at 2.6 s: alive only if it renewed.
    const touches = {
        'GET': [(s) => s.get(), true],
        'GET of the tail': [async (s) => s.from((await s.head()).next), true],
        'GET now': [(s) => s.get('offset=now'), true],
        'a 304': [async (s) => s.get('offset=-1', { 'If-None-Match': '*' }), true],
        'long-poll': [(s) => s.poll('-1'), true],
        'long-poll that times out': [(s) => s.poll('now'), true],
        'SSE': [async (s) => (await Sse.open(s, 'now')).close(), true],
        'POST': [(s) => s.append('y'), true],
        'producer POST': [(s) => s.append('y', producer('p', 0, 0)), true],
        'close-only': [(s) => s.close(), true],
        'producer close': [(s) => s.close(producer('p', 0, 0)), true],
        'HEAD': [(s) => s.head(), false],
        'nothing': [async () => {}, false],
        'OPTIONS': [(s) => s.send('OPTIONS'), false],
    };
    for (const [name, [touch, renews]] of Object.entries(touches)) {
        test(`I4: ${name} ${renews ? 'renews' : 'does not renew'} a sliding TTL`, async () => {
            await inTime(async () => {
                const createSent = Date.now();
                const stream = await ttlStream(2, 'x');
                await sleep(1100);
                const touchSent = Date.now();
                const failure = await touch(stream).then(() => null, (error) => error);
                if (renews && Date.now() >= createSent + 1950) {
                    return 'late';
                }
                assert.ifError(failure);
                await sleep(1500);
                const { status } = await stream.head();
                if (!renews) {
                    assert.equal(status, 404);
                    return 'good';
                }
                if (Date.now() >= touchSent + 1950) {
                    return 'late';
                }
                assert.equal(status, 200);
                await eventually('it still expires', async () => (await stream.head()).status === 404);
                return 'good';
            });
        });
    }

    test('I4: Expires-At is never extended', async () => {
        const stream = named();
        const deadline = Date.now() + 1500;
        await stream.create({ 'Stream-Expires-At': new Date(deadline).toISOString() }, 'x');
        for (let i = 0; i < 3; i++) {
            await sleep(250);
            const statuses = [(await stream.get()).status, (await stream.post('y')).status];
            if (Date.now() < deadline) {
                assert.deepEqual(statuses, [200, 204]);
            }
        }
        await sleep(1300);
        assert.equal((await stream.get()).status, 404);
    });

    test('I4: a stream with an SSE reader does not expire', async () => {
        await inTime(async () => {
            const stream = await ttlStream(1, 'x');
            const sse = await Sse.open(stream, 'now');
            if (sse.status !== 200) {
                return 'late';
            }
            await sse.control();
            await sleep(2600);
            assert.equal((await stream.head()).status, 200);
            await stream.append('still here');
            const event = await sse.until('the data', () => sse.events.find((e) => e.event === 'data'));
            assert.equal(event.data, 'still here');
            sse.close();
            return 'good';
        });
    });

    test('I5: a late touch counts in full', async () => {
        await inTime(async () => {
            const stream = await ttlStream(3, 'x');
            await sleep(600);
            const touchSent = Date.now();
            const touched = await stream.get();
            await sleep(2600);
            const { status } = await stream.head();
            if (touched.status !== 200 || Date.now() >= touchSent + 2950) {
                return 'late';
            }
            assert.equal(status, 200, 'alive 2.6 s after the touch');
            await eventually('it still expires', async () => (await stream.head()).status === 404);
            return 'good';
        });
    });

    test('R13: every operation sees the same deadline', async () => {
        const stream = named();
        const deadline = Date.now() + 1300;
        await stream.create({ 'Stream-Expires-At': new Date(deadline).toISOString() }, 'x');
        let goneAt = 0;
        const kinds = [() => stream.get(), () => stream.head(), () => stream.post('y'), () => stream.get('offset=now'),
                       () => stream.poll('-1')];
        for (let i = 0; goneAt === 0 || Date.now() < deadline + 400; i++) {
            const asked = Date.now();
            const { status } = await kinds[i % kinds.length]();
            const answered = Date.now();
            if (status === 404) {
                assert.ok(answered >= deadline, `gone ${deadline - answered} ms early`);
                goneAt ||= i + 1;
            } else {
                assert.ok(asked <= deadline, `alive ${asked - deadline} ms late`);
                assert.equal(goneAt, 0, 'never back');
            }
            await sleep(5);
        }
    });

    test('I1: a waiting long-poll or SSE of an expiring stream is ended, not left hanging', async () => {
        const own = await startServer(['--long-poll-timeout', '20s']);
        try {
            await inTime(async () => {
                const stream = new Stream(own, uniqueName());
                const { next } = await stream.create({ 'Stream-Expires-At': soon(900) }, 'x');
                const sse = await Sse.open(stream, 'now');
                if (sse.status !== 200) {
                    return 'late';
                }
                const poll = await stream.poll(next);
                assert.ok([204, 404, 410].includes(poll.status), String(poll.status));
                await sse.end();
                return 'good';
            });
        } finally {
            await own.dispose();
        }
    });

    test('J11: an expired source with forks: the fork is whole, the source gone, freed with the fork', async () => {
        let source;
        const fork = named();
        await inTime(async () => {
            source = await ttlStream(1, 'inherited');
            const made = await fork.put({ 'Stream-Forked-From': source.path, 'Stream-Expires-At': '2099-01-01T00:00:00Z' });
            return made.status === 201 ? 'good' : 'late';
        });
        await fork.append('+own');
        await sleep(1600);
        const gone = await source.get();
        assert.ok([404, 410].includes(gone.status));
        assert.equal((await fork.get()).text, 'inherited+own');
        const recreate = await source.put();
        assert.ok([201, 409].includes(recreate.status));
        assert.equal((await fork.get()).text, 'inherited+own');
        assert.equal((await fork.remove()).status, 204);
        if (recreate.status === 409) {
            await eventually('the name of the source is free', async () => (await source.put()).status === 201);
        }
        assert.equal((await source.get()).text, '');
    });

    test('J11: fork expiry follows the table of PROTOCOL.md 4.2', async () => {
        const at = '2098-01-01T00:00:00Z';
        const later = '2099-01-01T00:00:00Z';
        const expiry = { none: {}, ttl: { 'Stream-TTL': '700' }, at: { 'Stream-Expires-At': at } };
        const own = { none: {}, ttl: { 'Stream-TTL': '800' }, at: { 'Stream-Expires-At': later } };
        const instant = (text) => (text === undefined ? undefined : Date.parse(text));
        for (const [from, sourceHeaders] of Object.entries(expiry)) {
            const source = named();
            await source.create(sourceHeaders, 'x');
            for (const [asked, forkHeaders] of Object.entries(own)) {
                const fork = named();
                await fork.create({ ...forkHeaders, 'Stream-Forked-From': source.path });
                const { headers } = await fork.head();
                const wanted = asked === 'none' ? sourceHeaders : forkHeaders;
                assert.equal(headers['stream-ttl'], wanted['Stream-TTL'], `${from}, ${asked}`);
                assert.equal(instant(headers['stream-expires-at']), instant(wanted['Stream-Expires-At']), `${from}, ${asked}`);
            }
        }
    });
});

describe('I: expiry and restarts', () => {
    test('R13, R5: deadlines are the same after kills; huge ones stay far away', async () => {
        const own = await startServer();
        try {
            const gone = new Stream(own, 'gone');
            const renewed = new Stream(own, 'renewed');
            const far = new Stream(own, 'far');
            const zero = new Stream(own, 'zero');
            await far.create({ 'Stream-TTL': '3000000000' }, 'far');
            await zero.create({ 'Stream-TTL': '0' }, 'zero');
            await renewed.create({ 'Stream-TTL': '120' }, 'x');
            await gone.create({ 'Stream-TTL': '1' }, 'x');
            const deadline = sleep(1200);
            await own.crashAndRestart();
            assert.equal((await renewed.get()).text, 'x');
            await deadline;
            assert.equal((await gone.get()).status, 404);
            await own.crashAndRestart();
            assert.equal((await gone.get()).status, 404, 'stays gone');
            assert.equal((await far.get()).text, 'far');
            assert.equal((await zero.get()).status, 404);
            await own.restart();
            assert.equal((await gone.put({ 'Stream-TTL': '60' })).status, 201);
            assert.equal((await gone.get()).text, '');
            assert.equal((await far.head()).headers['stream-ttl'], '3000000000');
        } finally {
            await own.dispose();
        }
    });

    test('R4: a thousand expired, deleted and failed streams leave room for appends', async () => {
        const own = await startServer();
        try {
            const kib = 'x'.repeat(4096);
            await Promise.all(Array.from({ length: 16 }, async (_, lane) => {
                const raw = await Raw.open(own);
                for (let i = lane; i < rounds(1000); i += 16) {
                    const path = `/v1/stream/r4-${lane}-${i % 7}`;
                    const mode = i % 3;
                    raw.send(head('PUT', path, ['Content-Type: text/plain', `Content-Length: ${kib.length}`,
                        ...(mode === 0 ? ['Stream-TTL: 0'] : []), ...(mode === 1 ? ['Stream-TTL: 01'] : [])]) + kib);
                    raw.send(head('DELETE', path));
                    assert.equal((await raw.response()).status, mode === 1 ? 400 : 201);
                    assert.equal((await raw.response()).status, mode === 2 ? 204 : 404);
                }
                raw.destroy();
            }));
            const stream = new Stream(own, 'normal');
            await stream.create({}, kib);
            await stream.append(kib);
            assert.equal((await stream.get()).text.length, 8192);
        } finally {
            await own.dispose();
        }
    });
});

describe('I: delete', () => {
    test('I14: deleting what is not there is 404', async () => {
        assert.equal((await named().remove()).status, 404);
        const stream = named();
        await stream.create();
        assert.equal((await stream.remove()).status, 204);
        assert.equal((await stream.remove()).status, 404);
        for (const reply of [await stream.get(), await stream.head(), await stream.post('x'), await stream.close(),
                             await stream.poll('-1'), await stream.get('offset=-1&live=sse')]) {
            assert.equal(reply.status, 404);
        }
    });

    test('I10: deleted stays deleted over a kill', async () => {
        for (let i = 0; i < 3; i++) {
            const stream = named();
            await stream.create({}, 'x');
            await stream.append('y');
            assert.equal((await stream.remove()).status, 204);
            await server.crashAndRestart();
            assert.equal((await stream.get()).status, 404);
            await server.crashAndRestart();
            assert.equal((await stream.head()).status, 404);
        }
    });

    test('I11: quick appends and deletes do not come back', async () => {
        const paths = Array.from({ length: rounds(1000) }, (_, i) => `/v1/stream/i11-${i}`);
        await Promise.all(Array.from({ length: 32 }, async (_, lane) => {
            const raw = await Raw.open(server);
            for (const path of paths.filter((_, i) => i % 32 === lane)) {
                raw.send(head('PUT', path, ['Content-Type: text/plain', 'Content-Length: 0']) +
                         head('POST', path, ['Content-Type: text/plain', 'Content-Length: 1']) + 'x' +
                         head('DELETE', path));
                for (const wanted of [201, 204, 204]) {
                    assert.equal((await raw.response()).status, wanted);
                }
            }
            raw.destroy();
        }));
        for (const again of ['crashAndRestart', 'restart']) {
            await server[again]();
            const check = await Raw.open(server);
            for (const path of paths) {
                check.send(head('HEAD', path));
            }
            for (const path of paths) {
                assert.equal((await check.response('HEAD')).status, 404, path);
            }
            check.destroy();
        }
    });
});
