// Who may do what on a T3 Code server: tokens, the credentials that are exchanged for them, and the part of the HTTP
// API that is about both.
import { randomBytes } from 'node:crypto';

export const READ = 'orchestration:read';
export const SCOPES = [READ, 'orchestration:operate', 'terminal:operate', 'review:write', 'access:read', 'access:write'];

const MONTH_S = 30 * 24 * 3600 - 1; // T3 tells what is left by then
const EXCHANGE = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:t3:params:oauth:token-type:environment-bootstrap',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
};

const refused = (status, _tag, code, reason) => ({ status, body: { _tag, code, reason, traceId: 'unavailable' } });
const unauthorized = (reason) => refused(401, 'EnvironmentAuthInvalidError', 'auth_invalid', reason);
const badRequest = (reason) => refused(400, 'EnvironmentRequestInvalidError', 'invalid_request', reason);
const bearer = (headers) => /^Bearer +(\S+) *$/.exec(headers.authorization ?? '')?.[1];
const expiry = () => new Date(Date.now() + MONTH_S * 1000).toISOString();

export class Sessions {
    // `anyone`: nothing is asked for before the first grant. `protocol`: what upgrades must ask for; null: nothing.
    constructor({ anyone, protocol }) {
        this.anyone = anyone;
        this.protocol = protocol;
        this.tokens = new Map();
        this.pairings = new Map();
        this.endsItself = false; // whether there is a route by which a session ends itself
        this.answers = {}; // what a test answers itself: { 'POST /oauth/token': (request) => ({ status, body }) }
    }

    grant(token, scopes = [READ], rest = {}) {
        this.anyone = false;
        const sessionId = `session-${this.tokens.size + 1}`;
        this.tokens.set(token, { sessionId, token, scopes, revoked: false, issuedAt: new Date().toISOString(), ...rest });
        return this.tokens.get(token);
    }

    // Those tokens, or all.
    revoke(tokens) {
        this.tokens.forEach((session) => { session.revoked ||= tokens.length === 0 || tokens.includes(session.token); });
    }

    // The session of a request, or the refusal that it gets.
    check(headers) {
        if (this.anyone) {
            return { session: { sessionId: 'session-0', scopes: SCOPES } };
        }
        const token = bearer(headers);
        const session = this.tokens.get(token);
        return token === undefined ? { refusal: unauthorized('missing_credential') }
            : session === undefined || session.revoked ? { refusal: unauthorized('invalid_credential') } : { session };
    }

    // The protocol is looked at before the token is.
    checkUpgrade({ path, query, headers }) {
        if (path !== '/ws') {
            return { refusal: { status: 404 } };
        }
        if (this.protocol !== null && query.orchestrationProtocol !== String(this.protocol)) {
            return { refusal: { status: 426, body: {
                code: 'orchestration_protocol_incompatible', orchestrationProtocolVersion: this.protocol,
                message: `This server speaks orchestration protocol ${this.protocol}.`,
            } } };
        }
        return this.check(headers);
    }

    // Answers a request of the HTTP API: { status, body }.
    answer(request) {
        const route = `${request.method} ${request.path}`;
        if (this.answers[route] !== undefined) {
            return this.answers[route](request);
        }
        const [handler, needs] = {
            'GET /.well-known/t3/environment': [() => this.environment()],
            'GET /api/auth/session': [() => this.session(request)],
            'POST /oauth/token': [() => this.exchange(request)],
            ...(this.endsItself ? { 'POST /api/auth/session/revoke': [() => this.revokeItself(request)] } : {}),
            'POST /api/auth/pairing-token': [() => this.pairingToken(request), 'access:write'],
            'GET /api/auth/clients': [(session) => this.clients(session), 'access:read'],
            'POST /api/auth/clients/revoke': [(session) => this.revokeClient(session, request), 'access:write'],
            'POST /api/auth/clients/revoke-others': [(session) => this.revokeOthers(session), 'access:write'],
        }[route] ?? [() => ({ status: 404 })];
        if (needs === undefined) {
            return handler();
        }
        const { session, refusal } = this.check(request.headers);
        if (refusal !== undefined) {
            return refusal;
        }
        return session.scopes.includes(needs) ? handler(session)
            : { status: 403, body: { _tag: 'EnvironmentAuthorizationError', message: `${needs} is required.`, requiredScope: needs } };
    }

    environment() {
        return { status: 200, body: {
            environmentId: 'env-1', label: 'test', serverVersion: '0.1.1', platform: { os: 'linux', arch: 'x64' },
            capabilities: {}, ...(this.protocol === null ? {} : { orchestrationProtocolVersion: this.protocol }),
        } };
    }

    session({ headers }) {
        const auth = {
            policy: 'loopback-browser', bootstrapMethods: ['one-time-token'], sessionMethods: ['browser-session-cookie', 'bearer-session-token'],
            sessionCookieName: 't3_session',
        };
        const { session, refusal } = this.check(headers);
        return { status: 200, body: refusal !== undefined ? { authenticated: false, auth }
            : { authenticated: true, auth, scopes: session.scopes, sessionMethod: 'bearer-session-token', expiresAt: expiry() } };
    }

    // RFC 8693, as T3 does it: a credential is spent by an exchange that succeeds.
    exchange({ headers, body }) {
        const form = Object.fromEntries(new URLSearchParams(body));
        const wrong = Object.keys(EXCHANGE).find((name) => form[name] !== EXCHANGE[name]);
        if (!/^application\/x-www-form-urlencoded\b/.test(headers['content-type'] ?? '') || wrong !== undefined) {
            return badRequest(`invalid_${wrong ?? 'content_type'}`);
        }
        const granted = this.pairings.get(form.subject_token);
        if (granted === undefined) {
            return unauthorized('invalid_credential');
        }
        const scopes = form.scope === undefined ? granted : form.scope.split(' ').filter(Boolean);
        if (scopes.length === 0 || scopes.some((scope) => !SCOPES.includes(scope))) {
            return badRequest('invalid_scope');
        }
        if (scopes.some((scope) => !granted.includes(scope))) {
            return badRequest('scope_not_granted');
        }
        this.pairings.delete(form.subject_token);
        const { token } = this.grant(this.signed(scopes), scopes, { label: form.client_label, deviceType: form.client_device_type });
        return { status: 200, body: {
            access_token: token, issued_token_type: EXCHANGE.requested_token_type, token_type: 'Bearer', expires_in: MONTH_S, scope: scopes.join(' '),
        } };
    }

    // The next session's token: claims that anybody can read, and a signature.
    signed(scopes) {
        const claims = { v: 1, kind: 'session', sid: `session-${this.tokens.size + 1}`, sub: 'one-time-token', scopes };
        return `${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${randomBytes(24).toString('base64url')}`;
    }

    revokeItself({ headers }) {
        const { session, refusal } = this.check(headers);
        if (refusal === undefined) {
            session.revoked = true;
        }
        return refusal ?? { status: 200, body: { revoked: true } };
    }

    pairingToken({ body }) {
        const { label, scopes = SCOPES } = JSON.parse(body || '{}');
        const credential = randomBytes(6).toString('hex').toUpperCase();
        this.pairings.set(credential, scopes);
        return { status: 200, body: { id: `pairing-${credential}`, credential, label, expiresAt: expiry() } };
    }

    clients(own) {
        return { status: 200, body: [...this.tokens.values()].filter(({ revoked }) => !revoked).map((session) => ({
            sessionId: session.sessionId, subject: 'one-time-token', scopes: session.scopes, method: 'bearer-session-token',
            client: { label: session.label, deviceType: session.deviceType ?? 'unknown' }, issuedAt: session.issuedAt,
            expiresAt: expiry(), lastConnectedAt: null, connected: false, current: session === own,
        })) };
    }

    revokeClient(own, { body }) {
        const { sessionId } = JSON.parse(body);
        if (sessionId === own.sessionId) {
            return { status: 403, body: { _tag: 'EnvironmentOperationForbiddenError', code: 'operation_forbidden', reason: 'current_session_revoke_not_allowed', traceId: 'unavailable' } };
        }
        const session = [...this.tokens.values()].find((one) => one.sessionId === sessionId && !one.revoked);
        if (session !== undefined) {
            session.revoked = true;
        }
        return { status: 200, body: { revoked: session !== undefined } };
    }

    revokeOthers(own) {
        const others = [...this.tokens.values()].filter((session) => session !== own && !session.revoked);
        others.forEach((session) => { session.revoked = true; });
        return { status: 200, body: { revokedCount: others.length } };
    }
}
