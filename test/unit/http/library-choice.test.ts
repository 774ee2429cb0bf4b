import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { it } from 'node:test'
import { chooseLibrary } from '../../../src/primary/http/listen-socket.ts'

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
