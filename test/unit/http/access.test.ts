// Who may ask, by what a request says of its host, its page, its proxies and its token. That the listener asks: test/rooms/access.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSystemClosed } from '../../../src/core/config/checks.ts'
import { loadSettings } from '../../../src/core/config/load.ts'
import { addressOfBytes, networkOf } from '../../../src/core/http/network.ts'
import { AllowedHosts, Cors, isForeignPage, SystemAccess, TrustedProxies } from '../../../src/primary/http/access.ts'
import { places } from '../../../src/primary/http/places.ts'
import { Refusals } from '../../../src/primary/http/refusals.ts'

const settingsOf = (env: Record<string, string>) => loadSettings({ AUTH_SECRET_KEY: 'k'.repeat(32), ...env })

test('on a loopback address a service answers to the loopback names, with any port, and to no other spelling', () => {
  const hosts = new AllowedHosts([], '127.0.0.1')
  const names = ['localhost', 'LOCALHOST', 'localhost.', '127.0.0.1', '[::1]']
  for (const host of names.flatMap((name) => [name, `${name}:8000`, `${name}:1`])) assert.ok(hosts.allows(host), host)
  const strange = ['', 'evil', 'localhost.evil', 'evil.localhost', '127.0.0.1.evil', '127.0.0.2', '127.1', '0.0.0.0']
  for (const host of [...strange, 'localhost@evil', 'localhost:80:80', 'localhost:x', '[::1', '[::2]', '*'])
    assert.ok(!hosts.allows(host), host)
})

test('HTTP_ALLOWED_HOSTS lists names, names below a name, and addresses; nothing else is allowed then', () => {
  const { settings } = settingsOf({ HTTP_ALLOWED_HOSTS: 'shop.example, *.shop.example, 127.0.0.9, ::1' })
  const hosts = new AllowedHosts(settings.httpAllowedHosts, '127.0.0.1')
  for (const host of ['shop.example', 'Shop.Example:443', 'eu.shop.example', 'a.b.shop.example', '127.0.0.9', '[::1]'])
    assert.ok(hosts.allows(host), host)
  // A name that was allowed before lets no other in.
  for (const host of ['localhost', '127.0.0.1', '.shop.example', 'myshop.example', 'shop.example.evil'])
    assert.ok(!hosts.allows(host), host)
  assert.ok(new AllowedHosts([], '0.0.0.0').allows('anything.example'))
})

test('listed origins get permission, exactly, and no other does; every answer varies by origin then', () => {
  const cors = new Cors(['https://app.test', 'http://localhost:5173'], false)
  for (const origin of ['https://app.test', 'http://localhost:5173']) {
    const head = cors.headFor(origin)
    assert.ok(head.startsWith(`access-control-allow-origin: ${origin}\r\naccess-control-expose-headers: x-request-id`))
    assert.ok(head.endsWith('\r\nvary: origin\r\n') && !head.includes('credentials'), head)
    const preflight = cors.preflightHead(origin, ['GET', 'POST'], 'content-type, x-mine')
    assert.match(preflight, /^access-control-allow-methods: GET, POST\r\naccess-control-max-age: \d+\r\n/)
    assert.match(preflight, /\r\naccess-control-allow-headers: content-type, x-mine\r\n$/)
    // What a client sends is not reflected.
    assert.doesNotMatch(cors.preflightHead(origin, ['GET'], 'a<b>;c'), /allow-headers/)
  }
  for (const origin of [
    'https://app.test.evil',
    'http://app.test',
    'https://APP.test',
    'null',
    'https://app.test/',
    '*',
  ]) {
    assert.equal(cors.headFor(origin), 'vary: origin\r\n', origin)
    assert.equal(cors.preflightHead(origin, ['GET'], 'x-mine'), '', origin)
  }
  assert.equal(new Cors([], false).enabled, false)
  const withCookies = new Cors(['https://app.test'], true)
  assert.match(withCookies.headFor('https://app.test'), /\r\naccess-control-allow-credentials: true\r\n/)
  assert.doesNotMatch(withCookies.headFor('https://evil.test'), /credentials/)
})

test('any origin gets permission, without credentials, when * is listed', () => {
  const cors = new Cors(['*'], false)
  for (const origin of ['https://app.test', 'null', 'http://anything.test:1'])
    assert.match(cors.headFor(origin), /^access-control-allow-origin: \*\r\n(?!.*credentials)/s)
  assert.match(cors.preflightHead('null', ['POST'], ''), /^access-control-allow-methods: POST\r\n/)
})

test('a page is foreign unless it is of this host, by any scheme, or of an origin that is listed', () => {
  const host = '127.0.0.1:8000'
  const cors = new Cors(['https://app.test'], false)
  for (const origin of ['', `http://${host}`, `https://${host}`, 'https://app.test'])
    assert.ok(!isForeignPage({ host, origin, fetchSite: '' }, cors), origin)
  const foreign = ['https://evil.test', 'null', 'http://127.0.0.1:1', `https://${host}.evil.test`]
  for (const origin of [...foreign, `http://evil.test?http://${host}`])
    assert.ok(isForeignPage({ host, origin, fetchSite: '' }, cors), origin)
  assert.ok(isForeignPage({ host, origin: '', fetchSite: 'cross-site' }, cors))
  assert.ok(isForeignPage({ host, origin: 'null', fetchSite: 'cross-site' }, cors))
  assert.ok(!isForeignPage({ host, origin: 'null', fetchSite: 'same-origin' }, cors), 'a page without a referrer')
})

const PEER = '127.0.0.1'

/** What a list in `X-Forwarded-For` means behind 127.0.0.1, 10.0.0.0/8, fd00::/8 and 2001:db8::7. */
const FORWARDED: readonly (readonly [list: string, client: string])[] = [
  ['', PEER],
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
]

test('the client is whom the proxies name that are trusted, and nobody else says who he is', () => {
  const proxies = new TrustedProxies(['127.0.0.1', '10.0.0.0/8', 'fd00::/8', '2001:db8::7'])
  // As an IPv6 socket shows an IPv4 address.
  for (const peer of [PEER, '::ffff:127.0.0.1'])
    for (const [list, client] of FORWARDED) assert.equal(proxies.clientOf(peer, list), client, list)
  for (const others of [[], ['10.0.0.0/8']])
    assert.equal(new TrustedProxies(others).clientOf(PEER, '203.0.113.5'), PEER)
})

test('HTTP_TRUSTED_PROXIES takes addresses and networks alone, and is warned of where it trusts everybody', () => {
  for (const list of ['proxy.example', '10.0.0.0/33', 'fe80::1%eth0', '10.0.0.0/8/8', '10.0.0.0/'])
    assert.throws(
      () => settingsOf({ HTTP_TRUSTED_PROXIES: list }),
      /HTTP_TRUSTED_PROXIES: expected addresses or networks/,
    )
  for (const [list, isWide] of [
    ['0.0.0.0/0', true],
    ['10.0.0.0/8,::/0', true],
    ['128.0.0.0/1', true],
    ['10.0.0.0/8,fc00::/7,::1,127.0.0.1', false],
  ] as const) {
    const { warnings } = settingsOf({ HTTP_TRUSTED_PROXIES: list })
    assert.equal(
      warnings.some((warning) => warning.includes('everybody in it can say in X-Forwarded-For')),
      isWide,
      list,
    )
  }
})

test('an IPv6 client is its network, however it is spelled', () => {
  for (const [address, network] of [
    ['127.0.0.1', '127.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1:2'],
    ['2001:0DB8:1:2:0:0:0:6', '2001:db8:1:2'],
    ['2001:db8:0001:0002::6', '2001:db8:1:2'],
    ['2001:DB8:1:2::0.0.0.6', '2001:db8:1:2'],
    ['[2001:db8:1:2::7]:80', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
  ] as const)
    assert.equal(networkOf(address), network, address)
})

const TOKEN = 'operator-0123456789abcdef'
const READ_TOKEN = 'reader-0123456789abcdef'

test('a token is compared whole: nothing like it is one, in the header or in the cookie', () => {
  const { settings } = settingsOf({ SYSTEM_TOKEN: TOKEN, SYSTEM_READ_TOKEN: READ_TOKEN })
  const access = new SystemAccess(settings)
  const holderOf = (authorization: string, cookie = '') => access.operatorOf(authorization, cookie, false)
  assert.equal(holderOf(`Bearer ${TOKEN}`), 'token')
  assert.equal(holderOf(`bearer  ${READ_TOKEN}`), 'read-token')
  assert.equal(holderOf('', `a=b; heddle_system=${TOKEN}`), 'token')
  for (const wrong of [TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase(), '', 'x'.repeat(4000), 'null'])
    assert.deepEqual([holderOf(`Bearer ${wrong}`), holderOf('', `heddle_system=${wrong}`)], [null, null], wrong)
  for (const header of [TOKEN, `Basic ${btoa(`x:${TOKEN}`)}`, '']) assert.equal(holderOf(header), null)
  // None at all is no wrong one.
  assert.deepEqual([access.hasToken('', 'session=1'), access.hasToken('Bearer x', '')], [false, true])
  assert.throws(() => settingsOf({ SYSTEM_TOKEN: 'short' }), /SYSTEM_TOKEN/)
})

test('/system without a token is closed in production where a setting tells of a proxy, which brings the public', () => {
  for (const [env, isClosed] of [
    [{ NODE_ENV: 'production', HTTP_TRUSTED_PROXIES: '127.0.0.1' }, true],
    [{ NODE_ENV: 'production', HTTP_ALLOWED_HOSTS: 'localhost,shop.example' }, true],
    [{ NODE_ENV: 'production' }, false],
    [{ NODE_ENV: 'production', HTTP_TRUSTED_PROXIES: '127.0.0.1', SYSTEM_TOKEN: TOKEN }, false],
    [{ NODE_ENV: 'development', HTTP_TRUSTED_PROXIES: '127.0.0.1' }, false],
  ] as [Record<string, string>, boolean][])
    assert.equal(isSystemClosed(settingsOf(env).settings), isClosed, JSON.stringify(env))
})

test('wrong tokens are told of once a minute, with how many there were and from where', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines: unknown[] = []
  const refusals = new Refusals((level, message, _identity, fields) => lines.push([level, message, fields]))
  for (let n = 0; n < 100; n++) refusals.note('Wrong', { ip: `192.0.2.${n}` })
  refusals.note('Other', { ip: '192.0.2.1' })
  t.mock.timers.tick(60_000)
  t.mock.timers.tick(60_000)
  refusals.note('Wrong', { ip: '192.0.2.7' })
  assert.deepEqual(lines, [
    ['WARNING', 'Wrong', { ip: '192.0.2.0', count: 1 }],
    ['WARNING', 'Other', { ip: '192.0.2.1', count: 1 }],
    ['WARNING', 'Wrong', { ip: '192.0.2.99', count: 99 }],
    ['WARNING', 'Wrong', { ip: '192.0.2.7', count: 1 }],
  ])
})

test('streams are counted exactly, whoever comes and goes', () => {
  const { streams } = places
  streams.max = 3
  streams.maxPerAddress = 2
  const first = places.enter('event stream', '10.0.0.1', 'GET /a')!
  const second = places.enter('socket', '10.0.0.1', 'GET /a')!
  assert.equal(places.enter('long answer', '10.0.0.1', 'GET /a'), null)
  const third = places.enter('event stream', '::1', 'GET /a')!
  assert.equal(third.network, '0:0:0:0')
  places.leave(first)
  const fourth = places.enter('event stream', '10.0.0.1', 'GET /a')!
  places.leave(second)
  assert.equal(streams.held, 2)
  places.leave(third)
  places.leave(fourth)
})

test('addressOfBytes(): writes the bytes of a socket as plainAddress() does', () => {
  assert.equal(addressOfBytes(Uint8Array.of(192, 0, 2, 1)), '192.0.2.1')
  assert.equal(addressOfBytes(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1)), '192.0.2.1')
  assert.equal(addressOfBytes(Uint8Array.of(...new Array<number>(15).fill(0), 1)), '::1')
  assert.equal(addressOfBytes(Uint8Array.of(0x20, 1, 0xd, 0xb8, ...new Array<number>(11).fill(0), 0xa)), '2001:db8::a')
  assert.equal(addressOfBytes(new Uint8Array(0)), '')
})
