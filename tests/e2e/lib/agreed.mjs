// Whether records agree with what threads and houses were told.
import assert from 'node:assert/strict';

// What threads and houses were told, folded into what should be.
function fold(history) {
    const state = {
        name: undefined,
        status: 'open',
        members: new Map(),
        types: history.map(({ payload }) => payload.type),
    };
    for (const {
        authorId,
        payload: { type, ...rest },
    } of history) {
        if (type.endsWith('.renamed')) {
            state.name = rest.name;
        } else if (type === 'signal.thread.status_changed') {
            state.status = rest.status;
        } else if (type === 'signal.house.created') {
            state.members.set(authorId, 'owner');
        } else if (type === 'signal.house.member_added') {
            state.members.set(rest.agentId, rest.role);
        } else if (type === 'signal.house.member_removed') {
            state.members.delete(rest.agentId);
        }
    }
    return state;
}

export async function assertAgreed(owner, houseId, threadIds, what) {
    const house = await owner.get(`/api/houses/${houseId}`);
    const told = fold(await owner.history(house.primaryThreadId));
    assert.deepEqual(told.types.slice(0, 2), ['signal.house.created', 'signal.thread.created'], what);
    assert.equal(told.name ?? 'Busy', house.name, `${what}: the name of the house`);
    const members = await owner.list(`/api/houses/${houseId}/members`, 'members');
    assert.deepEqual(
        new Map(members.map(({ agentId, role }) => [agentId, role])),
        new Map([...told.members].sort()),
        what,
    );
    const threads = await owner.list(`/api/threads?house_id=${houseId}`, 'threads');
    for (const thread of threads.filter(({ id }) => id !== house.primaryThreadId)) {
        const { name, status, types } = fold(await owner.history(thread.id));
        assert.equal(types[0], 'signal.thread.created', what);
        assert.equal(types.filter((type) => type === 'signal.thread.created').length, 1, what);
        assert.equal(name ?? 'First', thread.name, `${what}: the name of ${thread.id}`);
        assert.equal(status, thread.status, `${what}: the status of ${thread.id}`);
    }
    for (const id of threadIds) {
        const there = threads.some((one) => one.id === id);
        const reply = await owner.call('GET', `/api/threads/${id}/stream?offset=-1`);
        assert.equal(reply.status, there ? 200 : 404, `${what}: the stream of ${id}`);
    }
}
