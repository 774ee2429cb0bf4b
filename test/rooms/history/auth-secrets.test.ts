import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('./secret-fixtures', import.meta.url))]

/** The part of each that nobody may read. */
const CORES: Record<string, (text: string) => string> = {
  hash: (text) => text.split('$').at(-1)!,
  token: (text) => text.split('.').at(-1)!,
  refresh: (text) => text.split('.').at(-1)!,
  link: (text) => text.split('=').at(-1)!,
  encoded: (text) => text.split('%24').at(-1)!,
  header: (text) => text.split('.').at(-1)!,
  session: (text) => text,
}

/** Takes each secret everywhere, and waits until that is recorded. */
async function spread(service: Heddle): Promise<Record<string, string>> {
  const made = await service.post('/secrets', {})
  const cookie = made.headers.get('set-cookie')!.split(';')[0]!
  const { session } = (await service.json('/secrets/session', { headers: { cookie } })).body
  const secrets: Record<string, string> = { ...made.body, session }
  for (const note of Object.values(secrets)) {
    const { body } = await service.post('/notes', { note })
    assert.deepEqual(body, { note, list: [`again ${note}`] }, 'whoever asks gets it')
    assert.equal((await service.post('/fail', { note })).status, 500)
    assert.equal((await service.fetch(`/notes/${encodeURIComponent(note)}`)).status, 200)
  }
  await service.post('/die', { note: session })
  const count = Object.keys(secrets).length
  await until(async () => (await service.json('/system/dead-letters')).body.length === count, 'letters')
  await until(() => service.logs.some(({ msg }) => /^Lane \d+ died: out of /.test(msg)), 'the death is told')
  await until(async () => /out of /.test(await (await service.fetch('/system/lanes')).text()), 'the black box is there')
  return secrets
}

/** Everything that was recorded, by where. */
async function recorded(service: Heddle): Promise<Record<string, string>> {
  const path = join(service.directory, 'history.db')
  const requests = (await service.json('/system/requests?limit=1000')).body as { id: string }[]
  const details = await Promise.all(
    requests.map(async ({ id }) => (await service.fetch(`/system/requests/${id}`)).text()),
  )
  const letters = (await service.json('/system/dead-letters')).body as { error: unknown }[]
  return {
    file: [path, `${path}-wal`].map((each) => (existsSync(each) ? readFileSync(each, 'latin1') : '')).join(''),
    requests: JSON.stringify(requests) + details.join(''),
    log: JSON.stringify(service.logs) + service.errors.join(''),
    letters: JSON.stringify(letters.map(({ error }) => error)),
    lanes: await (await service.fetch('/system/lanes')).text(),
  }
}

async function check(t: TestContext, env: Record<string, string>): Promise<Record<string, string>> {
  const all = {
    HISTORY_ENABLED: 'true',
    HISTORY_SAMPLE: '1',
    AUTH_SECRET_KEY: 'x'.repeat(40),
    LOG_LEVEL: 'debug',
    ...env,
  }
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 2, env: all })
  const secrets = await spread(service)
  const places = await recorded(service)
  for (const [place, text] of Object.entries(places)) {
    assert.match(text, /\[secret\]/, place)
    for (const [kind, secret] of Object.entries(secrets))
      assert.ok(
        !text.includes(CORES[kind]!(secret)),
        `${kind} in ${place}: ${text.slice(text.indexOf(CORES[kind]!(secret)) - 200).slice(0, 400)}`,
      )
  }
  return places
}

test('in development nothing that auth makes is recorded anywhere', async (t) => {
  const { requests } = await check(t, {})
  for (const kept of ['cannot read [secret]', 'A note: [secret]', 'Not readable: [secret]', 'again [secret]'])
    assert.ok(requests.includes(kept), kept)
})

test('in production nothing that auth makes is recorded anywhere', async (t) => {
  const { requests } = await check(t, { NODE_ENV: 'production', SYSTEM_TOKEN: '' })
  for (const kept of ['cannot read [secret]', 'A note: [secret]', 'Not readable: [secret]'])
    assert.ok(requests.includes(kept), kept)
})
