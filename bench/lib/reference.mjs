// Runs the Node reference server with its files in a directory:
//   node reference.mjs NODE_MODULES DATA_DIR
// Prints its address, and ends when it is terminated.
import { createRequire } from 'node:module';
import path from 'node:path';

const HANDLES = 4000;
const [modules, dataDir] = process.argv.slice(2);
const require = createRequire(path.join(modules, 'x.js'));
const { DurableStreamTestServer } = require('@durable-streams/server');

const server = new DurableStreamTestServer({ port: 0, host: '127.0.0.1', dataDir });
// Its pool of 100 open files answers 404 when more streams than that are written at once, which
// would measure refusals. A larger pool lets it do its best.
const pool = server.store.fileHandlePool;
if (!pool) {
    throw new Error('the reference server has no file handle pool any more; see reference.mjs');
}
server.store.fileHandlePool = new pool.constructor(HANDLES);
const url = await server.start();
process.stdout.write(`listening on ${url ?? server.url}\n`);
