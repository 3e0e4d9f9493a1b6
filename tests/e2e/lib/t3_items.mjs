// What T3 Code servers tell, with all members that they send.
const TIME = '2026-11-05T00:00:00.000Z';

// A thread as shells list it.
export const threadShell = (id, rest = {}) => ({
    id, projectId: 'proj-1', title: `Thread ${id}`, createdBy: 'user', creationSource: 'web', providerInstanceId: 'codex',
    modelSelection: { instanceId: 'codex', model: 'a-model' }, runtimeMode: 'full-access', interactionMode: 'default',
    branch: null, worktreePath: null, lineage: { parentThreadId: null, relationshipToParent: null, rootThreadId: id },
    forkedFrom: null, activeProviderThreadId: null, latestRunId: null, activeRunId: null, status: 'idle',
    pendingRuntimeRequest: null, latestVisibleMessage: null, latestUserMessageAt: null, hasActionableProposedPlan: false,
    itemCount: 0, visibleItemCount: 0, createdAt: TIME, updatedAt: TIME, archivedAt: null, settledOverride: null,
    settledAt: null, deletedAt: null, ...rest,
});

export const shellSnapshot = (threads = [], archivedThreads = [], snapshotSequence = 1) => ({
    kind: 'snapshot', snapshot: { schemaVersion: 2, snapshotSequence, projects: [], threads, archivedThreads },
});

// What a server of the first orchestration protocol sends.
export const shellSnapshotV1 = (threads = [], snapshotSequence = 1) => ({
    kind: 'snapshot', snapshot: { snapshotSequence, projects: [], threads, updatedAt: TIME },
});

export const threadUpdated = (id, rest = {}, { location = 'active', sequence = 2 } = {}) => ({
    kind: 'thread.updated', sequence, location, thread: threadShell(id, rest),
});

export const threadRemoved = (threadId, { location = 'active', sequence = 3 } = {}) => ({
    kind: 'thread.removed', sequence, location, threadId,
});

// What getThreadProjection answers.
export const projectionOf = (id, { runs = [], messages = [], ...thread } = {}) => ({
    thread: { id, projectId: 'proj-1', title: `Thread ${id}`, archivedAt: null, deletedAt: null, createdAt: TIME, updatedAt: TIME, ...thread },
    runs, messages, attempts: [], nodes: [], subagents: [], providerSessions: [], providerThreads: [], providerTurns: [],
    runtimeRequests: [], plans: [], turnItems: [], checkpointScopes: [], checkpoints: [], contextHandoffs: [],
    contextTransfers: [], visibleTurnItems: [], updatedAt: TIME,
});

// What subscribeThread begins with.
export const threadSnapshot = (id, rest = {}) => ({ kind: 'snapshot', snapshotSequence: 1, projection: projectionOf(id, rest) });
