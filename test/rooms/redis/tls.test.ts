import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type Authority, authority } from '../../support/certificates.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { connect, settingsOf } from '../../support/redis-under-test.ts'
import { findProgram } from '../../support/servers/programs.ts'
import { type RedisServer, redisServer } from '../../support/servers/redis.ts'
import { suiteOwner } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const USER = 'weaver'
const PASSWORD = 'the password of the weaver'
const SKIP = findProgram('redis') === undefined && 'needs redis-server'

describe('a key-value store with TLS and users', { skip: SKIP }, () => {
  const owner = { ...suiteOwner(), skip: () => {} }
  let server: RedisServer
  let [known, stranger] = [] as unknown as [Authority, Authority]
  /** Of the port that speaks TLS and nothing else. */
  let env: Record<string, string>

  before(async () => {
    const folder = temporaryFolder(owner)
    ;[known, stranger] = [await authority(folder, 'known'), await authority(folder, 'stranger')]
    // For the address alone: `localhost` is another host.
    const { certificateFile, keyFile } = await known.issue('server', 'IP:127.0.0.1')
    const port = String(await freePort())
    const files = ['--tls-cert-file', certificateFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', known.caFile]
    const args = ['--tls-port', port, '--tls-auth-clients', 'no', ...files]
    server = (await redisServer(owner, { own: true, args }))!
    env = { KV_HOST: '127.0.0.1', KV_PORT: port, KV_USER: USER, KV_PASSWORD: PASSWORD }
  })

  test('every connection of a process is encrypted and of the user: state, streams, and what wakes them', async (t) => {
    const admin = connect(t, settingsOf(server))
    await admin.command('acl', ['SETUSER', USER, 'on', `>${PASSWORD}`, '~heddle:*', '&*', '+@all'])
    const tls = { KV_TLS: 'verify', KV_CA_FILE: known.caFile, EVENT_BUS_DRIVER: 'keyvalue_streams' }
    const heddle = await startHeddle(t, {
      domains: [SHIPPED],
      lanes: 1,
      env: { ...env, ...tls, TOOLS_DIR: await toolsDirWith(t, 'redis-state') },
    })
    const user = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
    const created = await heddle.post('/users', user)
    assert.equal(created.status, 201)
    const tree = async () => JSON.stringify((await heddle.json('/system/traces/tree')).body)
    await until(async () => (await tree()).includes('welcome.sent'), 'the events came through the streams')
    const clients = (await admin.command<string>('client', ['LIST'])).trim().split('\n')
    const ours = clients.filter((line) => /\bname=heddle:/.test(line))
    assert.ok(ours.length >= 4, clients.join('\n'))
    const [address] = [`laddr=127.0.0.1:${env.KV_PORT}`]
    for (const line of ours) assert.ok(line.includes(`user=${USER}`) && line.includes(address), line)
    assert.equal(JSON.stringify(heddle.logs).includes(PASSWORD), false)
  })

  test('require takes any certificate', async (t) => {
    const client = connect(t, settingsOf(server, { KV_PORT: env.KV_PORT!, KV_TLS: 'require' }))
    assert.equal(await client.command('ping', []), 'PONG')
  })

  const FAULTS: [what: string, more: () => Record<string, string>, message: RegExp][] = [
    [
      'a certificate by another authority',
      () => ({ KV_TLS: 'verify', KV_CA_FILE: stranger.caFile }),
      /authority that KV_CA_FILE names/,
    ],
    ['no authority at all', () => ({ KV_TLS: 'verify' }), /authority that KV_CA_FILE names/],
    [
      'a certificate for another host',
      () => ({ KV_TLS: 'verify', KV_CA_FILE: known.caFile, KV_HOST: 'localhost' }),
      /for another host: correct KV_HOST/,
    ],
    [
      'a server without TLS',
      () => ({ KV_TLS: 'require', KV_PORT: String(server.port) }),
      /speaks TLS, which KV_TLS=require wants/,
    ],
    [
      'a wrong password of a user',
      () => ({ KV_TLS: 'require', KV_PASSWORD: 'wrong' }),
      /refuses the user weaver with this password; correct KV_USER/,
    ],
  ]
  for (const [what, more, message] of FAULTS) {
    test(`${what} is refused, and the fault says what to mend`, async (t) => {
      const client = connect(t, settingsOf({ env }, { KV_CONNECT_TIMEOUT: '1', ...more() }))
      await assert.rejects(client.command('ping', []), { message })
    })
  }
})
