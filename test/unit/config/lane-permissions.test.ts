import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { type ConfigFaults, loadSettings } from '../../../src/core/config/load.ts'
import { messageOf } from '../../../src/core/errors/description.ts'

const HAS_NET = process.allowedNodeEnvironmentFlags.has('--allow-net')

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadSettings(env)
    return []
  } catch (error) {
    return (error as ConfigFaults).faults
  }
}

test('LANE_PERMISSIONS are items, and the paths of some are resolved', () => {
  const read = (text: string) => loadSettings({ LANE_PERMISSIONS: text }).settings.lanePermissions
  assert.deepEqual(read(''), [])
  assert.deepEqual(read(' addons, fs-read:./a b , fs-write:/var/c*,fs-read,child,worker'), [
    'addons',
    `fs-read:${resolve('a b')}`,
    'fs-write:/var/c*',
    'fs-read',
    'child',
    'worker',
  ])
})

test('anything else is refused with all that is accepted', () => {
  for (const wrong of ['fs', 'child:./a', 'fs-read:', 'FS-READ', 'addons child'])
    assert.match(faultsOf({ LANE_PERMISSIONS: wrong }).join(), /expected fs-read, .*fs-write:\.\/path, child, .* none/)
})

test('a start says what lanes themselves need, and why', () => {
  const [fault, ...more] = faultsOf({ LANE_PERMISSIONS: HAS_NET ? 'none,net' : 'none' })
  assert.match(fault!, HAS_NET ? /none alone/ : /addons, too: .*better-sqlite3/)
  assert.equal(more.length, HAS_NET ? 1 : 0)
  const onServers = { TOOLS: 'postgres,redis-state', LANE_PERMISSIONS: 'none' }
  assert.deepEqual(
    faultsOf(onServers).map((text) => text.replace(/, got .*/, '')),
    HAS_NET ? ['LANE_PERMISSIONS: expected net, too: each lane is connected to PostgreSQL or Redis'] : [],
  )
  const net = faultsOf({ LANE_PERMISSIONS: 'addons,net' })
  if (HAS_NET) assert.deepEqual(net, [])
  else assert.match(net.join(), /no net: Node \S+ keeps no thread from the network, Node 26 does/)
})

test('what Node refuses is told as the item that would allow it', () => {
  const refused = (more: object) => Object.assign(new Error('Restricted. Use --allow-x to manage permissions.'), more)
  const code = 'ERR_ACCESS_DENIED'
  const read = refused({ code, permission: 'FileSystemRead', resource: '/a' })
  assert.equal(messageOf(read), 'Restricted (LANE_PERMISSIONS lacks fs-read:/a)')
  const child = refused({ code, permission: 'ChildProcess', resource: '/bin/sh' })
  assert.equal(messageOf(child), 'Restricted (LANE_PERMISSIONS lacks child)')
  assert.match(messageOf(refused({ code: 'ERR_DLOPEN_DISABLED' })), /lacks addons\)$/)
  assert.equal(
    messageOf(Object.assign(new Error('fsync API is disabled when …'), { code })),
    'fsync API is disabled when …',
  )
  const name = Object.assign(new Error(`getaddrinfo ${code} example.com`), { code })
  assert.equal(messageOf(name), `${name.message} (LANE_PERMISSIONS lacks net)`)
  assert.equal(messageOf(new TypeError('fetch failed', { cause: name })), 'fetch failed (LANE_PERMISSIONS lacks net)')
  assert.equal(
    messageOf(refused({ code, permission: 'Inspector' })),
    'Restricted. Use --allow-x to manage permissions.',
  )
})
