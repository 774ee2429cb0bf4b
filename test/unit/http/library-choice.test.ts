import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { it, type TestContext, test } from 'node:test'
import type { HttpContext } from '../../../src/contracts/http-request.ts'
import type { State } from '../../../src/contracts/state.ts'
import { chooseLibrary } from '../../../src/primary/http/listening.ts'
import { keepIdle } from '../../../src/primary/http/uws-idle.ts'
import { Sessions } from '../../../src/runtime/sessions.ts'
import MemoryStateTool from '../../../src/tools/memory-state/index.ts'
import { buildTool } from '../../support/tool-runtime.ts'

/** The Nodes for which uWebSockets.js 20.69 has a binary. */
const NEWER_NODES = [24, 26]

const major = Number(process.versions.node.split('.')[0])

/** As `2.36`. */
const glibc = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime

const [whole = 0, minor = 0] = (glibc ?? '').split('.').map(Number)

const isNewGlibc = whole > 2 || (whole === 2 && minor >= 38)

/** npm installs it for the Node that it runs on, which need not be this one. */
function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve(`@uwsjs/${process.platform}-${process.arch}-${major}`)
    return true
  } catch {
    return false
  }
}

it('uWebSockets.js 20.51 serves up to Node 23, newer ones by 20.69 where glibc is 2.38 or newer, else node:http, and says why', async () => {
  const { library, missing } = await chooseLibrary('auto')
  const hasBinary = NEWER_NODES.includes(major) && isInstalled()
  if (major < 24 || (hasBinary && isNewGlibc)) {
    assert.deepEqual([library.name, missing], ['uWebSockets.js', null])
    return
  }
  assert.equal(library.name, 'node:http')
  assert.match(
    missing!,
    hasBinary
      ? /^its binary for Node \d+ needs glibc 2\.38 or newer, as in Debian 13 and Ubuntu 24\.04; the one for Node 22 does not$/
      : /^it has no binary for Node \d+ on /,
  )
  await assert.rejects(chooseLibrary('uws'), { code: 'HTTP_LISTEN' })
})

it('node:http serves where it is asked for, and nothing is missing', async () => {
  const { library, missing } = await chooseLibrary('node')
  assert.deepEqual([library.name, missing], ['node:http', null])
})

const UWS = join(import.meta.dirname, '../../../node_modules/@uwsjs')
/** Binaries that may be installed, and in which the runtime has to know its way: a new version wants a look at its code. */
const KNOWN = ['linux-x64-22', 'linux-x64-24', 'linux-x64-26'].filter((name) => existsSync(join(UWS, name)))

it('uWebSockets.js keeps idle connections by code of the runtime in the spare bytes of its executable page, and nothing else is changed', () => {
  assert.ok(KNOWN.length > 0 || process.platform !== 'linux' || process.arch !== 'x64')
  for (const name of KNOWN) {
    const before = readFileSync(join(UWS, name, 'uws.node'))
    const after = Buffer.from(before)
    assert.equal(keepIdle(after, 75_000), true, name)
    const changed = [...after.keys()].filter((at) => after[at] !== before[at])
    const jump = changed[0]!
    const code = changed.filter((at) => at >= jump + 5)
    assert.equal(new Set(code.map((at) => Math.floor(at / 4096))).size, 1)
    assert.ok(code.every((at) => before[at] === 0))
    for (const at of [0x280, jump, code.at(-1)!]) {
      const other = Buffer.from(before)
      other[at]! ^= 0xff
      const asItWas = Buffer.from(other)
      assert.equal(keepIdle(other, 75_000), false, `${name} at ${at}`)
      assert.ok(other.equals(asItWas))
    }
  }
})

it('a time that uWebSockets.js cannot keep chooses node:http, or is refused', async () => {
  const { library } = await chooseLibrary('auto', 7_999)
  assert.equal(library.name, 'node:http')
  await assert.rejects(chooseLibrary('uws', 7_999), { code: 'HTTP_LISTEN' })
  const serves = major === 22 ? KNOWN.includes('linux-x64-22') : isNewGlibc && KNOWN.includes(`linux-x64-${major}`)
  for (const keepAliveMs of [8_000, 86_400_000])
    assert.equal((await chooseLibrary('auto', keepAliveMs)).library.name, serves ? 'uWebSockets.js' : 'node:http')
})

function stateOf(t: TestContext): State {
  const { tool } = buildTool(MemoryStateTool)
  t.after(() => tool.stop())
  return tool.api()
}

/** A request of a browser that keeps what it is given. */
function browser() {
  const cookies: Record<string, string> = {}
  const setCookie = (name: string, value: string): void => {
    cookies[name] = value
  }
  const context = { method: 'GET', headers: {}, cookies, setCookie, setHeader() {} }
  return { context: context as unknown as HttpContext, cookies }
}

test('the ids of sessions cannot be had from the store', async (t) => {
  const state = stateOf(t)
  const { context, cookies } = browser()
  await new Sessions(state).start(context, { user: 'ada' })
  const keys = await state.keys({ namespace: 'sessions' })
  assert.equal(keys.length, 1)
  assert.ok(!keys.includes(cookies['__Host-session']!))
})

test('a session that is ended while a request renews it stays ended', async (t) => {
  const state = stateOf(t)
  const { context } = browser()
  await new Sessions(state).start(context, { user: 'ada' })
  // Somebody logs out between the look and the renewal.
  const slow: State = {
    ...state,
    get: (async (key, options) => {
      const session = await state.get(key, options)
      await state.clear(options)
      return session
    }) as State['get'],
  }
  await new Sessions(slow, { rolling: true }).read(context)
  assert.equal(await new Sessions(state).read(context), null)
})
