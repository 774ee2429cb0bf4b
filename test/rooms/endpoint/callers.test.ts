import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const CALLERS = fileURLToPath(new URL('../../fixtures/callers', import.meta.url))

interface Caller {
  token?: string
  cookie?: string
}

describe('who calls with an Idempotency-Key', () => {
  const shared = shareService((owner) => startHeddle(owner, { domains: [CALLERS, SHIPPED], lanes: 1 }))

  async function send(path: string, { token, cookie }: Caller = {}) {
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      'idempotency-key': 'one',
      origin: shared().url,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(cookie === undefined ? {} : { cookie }),
    }
    const answer = await shared().json(path, { method: 'POST', headers, body: '{"size":1}' })
    return { ...answer, isReplay: answer.headers.get('idempotency-replayed') === 'true' }
  }

  /** Each has an answer of his own, and gets it again. */
  async function assertApart(path: string, callers: readonly Caller[]): Promise<void> {
    const firsts = []
    for (const caller of callers) firsts.push(await send(path, caller))
    assert.ok(
      firsts.every(({ status, isReplay }) => status === 200 && !isReplay),
      JSON.stringify(firsts),
    )
    assert.equal(new Set(firsts.map(({ body }) => body.id)).size, callers.length)
    for (const [n, caller] of callers.entries()) {
      const again = await send(path, caller)
      assert.deepEqual([again.isReplay, again.body], [true, firsts[n]!.body])
    }
  }

  async function logIn(name: string): Promise<Caller> {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name }) }
    const answer = await shared().fetch('/login', init)
    return { cookie: answer.headers.get('set-cookie')!.split(';')[0]! }
  }

  const claims = (value: object): Caller => ({ token: Buffer.from(JSON.stringify(value)).toString('base64url') })

  test('is a session, which the handler alone reads', async () => {
    const [ada, bob] = [await logIn('ada'), await logIn('bob')]
    assert.equal((await send('/by-session')).status, 401)
    await assertApart('/by-session', [ada, bob])
    assert.equal((await send('/by-session', ada)).body.name, 'ada')
  })

  test('is a token, which the handler alone reads', async () => {
    await assertApart('/by-own-check', [{ token: 'a' }, { token: 'b' }, {}])
  })

  test('is the issuer and the subject of a token, or the token', async () => {
    const of = (iss: unknown, sub: unknown, more = {}) => claims({ iss, sub, ...more })
    await assertApart('/by-claims', [
      of('https://a', 'ada'),
      of('https://b', 'ada'),
      of(undefined, 'ada'),
      of(undefined, '1'),
      of(undefined, 1),
      of('https://a', undefined),
      of('https://a', undefined, { jti: 2 }),
    ])
    const [first, second] = [of('https://c', 'ada', { exp: 1 }), of('https://c', 'ada', { exp: 2 })]
    assert.deepEqual((await send('/by-claims', first)).body, (await send('/by-claims', second)).body)
  })

  test('is the session, too, where many have one token', async () => {
    const [ada, bob] = [await logIn('ada'), await logIn('bob')]
    const token = 'shop'
    await assertApart('/by-claims-and-session', [
      { ...ada, token },
      { ...bob, token },
    ])
  })

  test('is what idempotencyScope says', async () => {
    const [ada, again, bob] = [await logIn('ada'), await logIn('ada'), await logIn('bob')]
    await assertApart('/by-scope', [ada, bob])
    assert.deepEqual((await send('/by-scope', again)).body, (await send('/by-scope', ada)).body)
    const { status } = await send('/by-no-scope')
    assert.equal(status, 500)
    const lines = shared().logs.filter(({ msg }) => msg.startsWith('/by-no-scope'))
    assert.match(lines[0]!.msg, /idempotencyScope must return a text/)
  })

  test('is nobody whom a session names that is known too late', async () => {
    const { cookie } = await logIn('ada')
    const late = { cookie: cookie!.replace('__Host-session', 'late') }
    assert.equal((await send('/by-late-session', late)).status, 500)
    assert.match(
      shared()
        .logs.map(({ msg }) => msg)
        .join('\n'),
      /the cookie late, which.*in the constructor/s,
    )
    // From now on it is known, though it may be nobody's.
    assert.equal((await send('/by-late-session', { cookie: late.cookie.slice(0, -1) })).status, 401)
    await assertApart('/by-late-session', [
      late,
      { cookie: (await logIn('bob')).cookie!.replace('__Host-session', 'late') },
    ])
  })

  test('must be known where guards may know more than the runtime', async () => {
    const { plugins } = (await shared().json('/system/status')).body
    for (const [plugin, route] of [
      ['SendUnknown', 'POST /by-guard'],
      ['SendUnasked', 'POST /by-hook'],
      ['SendOnPrimary', 'POST /on-primary'],
    ]) {
      const { status, error } = plugins[`parcels.${plugin}`]
      assert.equal(status, 'DEAD', plugin)
      assert.ok(error.startsWith(`${route} has idempotency`), error)
      assert.match(error, /idempotencyScope/)
    }
    for (const path of ['/by-guard', '/by-hook', '/on-primary']) assert.equal((await send(path)).status, 404, path)
  })
})
