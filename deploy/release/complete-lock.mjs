// Completes package-lock.json: asks the registry for the hash of each package that has none, and takes out what npm must not know.
// npm leaves out the hash of a package of another platform when it has never fetched it. Exit code 1: some still have none; they are named.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'

const FILE = new URL('../../package-lock.json', import.meta.url)
const AT_A_TIME = 8
/**
 * Everything runs on the Node that is installed with them, whatever Node runs npm. With the engines that these name, an older npm would leave
 * the listener's binary out without a word, and warn of the database driver. The package's own lock file is an application's: nothing of this is in it.
 */
const RUNS_ON_OUR_NODE = /^node_modules\/(?:@uwsjs\/[\w-]+-22|better-sqlite3)$/

const run = promisify(execFile)
const lock = JSON.parse(readFileSync(FILE, 'utf8'))
const incomplete = Object.entries(lock.packages).filter(
  ([path, { integrity, link }]) => path !== '' && !link && !integrity,
)
const missing = []

async function complete([path, entry]) {
  const name = `${entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${entry.version}`
  let integrity = ''
  try {
    integrity = (await run('npm', ['view', name, 'dist.integrity'])).stdout.trim()
  } catch {
    // Told below, with the others that the registry does not have.
  }
  if (!integrity.startsWith('sha512-')) return void missing.push(name)
  const { version, resolved, ...rest } = entry
  // In npm's order of keys.
  lock.packages[path] = { version, ...(resolved && { resolved }), integrity, ...rest }
}

for (const [path, entry] of Object.entries(lock.packages)) {
  if (RUNS_ON_OUR_NODE.test(path)) delete entry.engines
}
// The package has its binaries. Without this, `npm ci` would try to compile it.
lock.packages['node_modules/better-sqlite3'].gypfile = false

for (let first = 0; first < incomplete.length; first += AT_A_TIME) {
  await Promise.all(incomplete.slice(first, first + AT_A_TIME).map(complete))
}
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`)
if (missing.length > 0) {
  console.error(`The registry has no hash of these packages:\n  ${missing.sort().join('\n  ')}`)
  process.exitCode = 1
}
