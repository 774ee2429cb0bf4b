import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { ask } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { shareService } from '../../support/shared-service.ts'

const PEER = '127.0.0.1'

async function ipOf(port: number, path: string, forwardedFor: string | undefined): Promise<string> {
  const headers = forwardedFor === undefined ? undefined : { 'x-forwarded-for': forwardedFor }
  const { body } = await ask(port, 'GET', path, headers)
  return JSON.parse(body.toString()).data.ip
}

/** What a list in `X-Forwarded-For` means behind 127.0.0.1, 10.0.0.0/8, fd00::/8 and 2001:db8::7. */
const CASES: readonly (readonly [list: string | undefined, client: string])[] = [
  [undefined, PEER],
  ['203.0.113.5', '203.0.113.5'],
  ['203.0.113.5, 10.1.2.3', '203.0.113.5'],
  // What a client has written itself stands to the left.
  ['1.2.3.4, 203.0.113.5', '203.0.113.5'],
  ['10.9.9.9, 203.0.113.5, 10.1.2.3', '203.0.113.5'],
  ['10.9.9.9, 10.1.2.3', '10.9.9.9'],
  ['2001:db8::5', '2001:db8::5'],
  ['2001:db8::5, fd12::1, 2001:db8::7', '2001:db8::5'],
  // One spelling of each, so that limits count it once.
  ['2001:0DB8:0:0:0:0:0:5, FD12:0::1', '2001:db8::5'],
  ['::ffff:203.0.113.5, ::ffff:10.1.2.3', '203.0.113.5'],
  ['::ffff:cb00:7105, ::ffff:0a01:0203', '203.0.113.5'],
  ['203.0.113.5:4711', '203.0.113.5'],
  ['[2001:db8::5]:4711, [fd12::1]', '2001:db8::5'],
  ['unknown', PEER],
  ['203.0.113.5, <script>, 10.1.2.3', '10.1.2.3'],
  ['203.0.113.5,', PEER],
  ['', PEER],
]

for (const [host, what] of [
  [PEER, 'IPv4'],
  ['::', 'IPv6, where IPv4 addresses are mapped'],
] as const) {
  describe(`HTTP_TRUSTED_PROXIES on a socket of ${what}`, () => {
    const service = shareService((owner) =>
      startHeddle(owner, {
        domains: [SERVING],
        lanes: 1,
        env: {
          HTTP_HOST: host,
          AUTH_SECRET_KEY: 'k'.repeat(32),
          HTTP_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8, fd00::/8, 2001:db8::7',
        },
      }),
    )
    for (const [list, client] of CASES) {
      it(`takes ${JSON.stringify(list) ?? 'no list'} for ${client}`, async () => {
        for (const path of ['/w/echo', '/p/echo', '/w/echo'])
          assert.equal(await ipOf(service().port, path, list), client, path)
      })
    }
  })
}

describe('HTTP_TRUSTED_PROXIES', () => {
  it('unset, or without the sender, leaves the address of the connection', async (t) => {
    for (const env of [{}, { HTTP_TRUSTED_PROXIES: '10.0.0.0/8' }] as Record<string, string>[]) {
      const { port } = await startHeddle(t, { domains: [SERVING], lanes: 1, env })
      for (const path of ['/w/echo', '/p/echo']) assert.equal(await ipOf(port, path, '203.0.113.5'), PEER)
    }
  })

  it('that does not name the sender of an X-Forwarded-For says so once', async (t) => {
    for (const [env, times] of [
      [{}, 1],
      [{ HTTP_TRUSTED_PROXIES: '10.0.0.0/8' }, 1],
      [{ HTTP_TRUSTED_PROXIES: '127.0.0.0/8' }, 0],
    ] as [Record<string, string>, number][]) {
      const { port, logs } = await startHeddle(t, { domains: [SERVING], lanes: 1, env })
      for (let n = 0; n < 5; n++) await ipOf(port, '/w/echo', '203.0.113.5')
      const told = logs.filter(({ msg }) => msg.includes('X-Forwarded-For that is not believed'))
      assert.deepEqual(
        told.map(({ ip }) => ip),
        new Array(times).fill(PEER),
      )
    }
  })

  it('that lets everybody say who he is is warned of', () => {
    for (const [list, isWide] of [
      ['0.0.0.0/0', true],
      ['10.0.0.0/8,::/0', true],
      ['128.0.0.0/1', true],
      ['10.0.0.0/8,fc00::/7,::1,127.0.0.1', false],
    ] as const) {
      const { warnings } = loadSettings({ HTTP_TRUSTED_PROXIES: list, AUTH_SECRET_KEY: 'k'.repeat(32) })
      assert.equal(
        warnings.some((warning) => warning.includes('everybody in it can say in X-Forwarded-For who he is')),
        isWide,
        list,
      )
    }
  })

  it('refuses the start with what is no address or network', async (t) => {
    for (const list of ['proxy.example', '10.0.0.0/33', 'fe80::1%eth0', '10.0.0.0/8/8', '10.0.0.0/'] as const) {
      const { child, errors } = await spawnHeddle(t, { env: { HTTP_TRUSTED_PROXIES: list } })
      const code = await new Promise((resolve) => child.once('close', resolve))
      assert.equal(code, 78, list)
      assert.match(errors.join(''), /HTTP_TRUSTED_PROXIES: expected addresses or networks/)
    }
  })
})
