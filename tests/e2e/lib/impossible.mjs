// Tests that some machines cannot run. There they are skipped with the reason, and tools/run-tests counts them as
// impossible, never as passed.
import { test } from 'node:test';

// What stands for test() where `reason` (empty: there is none) keeps its tests from running. Node takes an empty text for
// a reason.
export const testUnless = (reason) => (name, body) => test(name, { skip: reason === '' ? false : reason }, body);
