// What the repository weighs, beside the last release: the gate ends with this table. `node .ci/weights.mjs --keep` writes the figures of a release.
// Behind it may stand what `times` of a shell says of the processes that it has waited for: `1m2.345s 0m6.789s`.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packedManifest } from '../deploy/package/manifest.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const KEPT = join(ROOT, '.ci/weights.json')
const CODE = /\.(?:[cm]?[jt]s|sql|lua|css|html)$/
const COMMENT = /^(?:\/\/|\/\*|\*|--)/
/** Folders whose folders are rooms of their own. */
const WIDE = /^(?:src|domains|test)\//

const read = (path) => readFileSync(join(ROOT, path), 'utf8')

/** Code lines, without comments and empty lines, and files, by room. */
function rooms() {
  const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).split('\n')
  const found = {}
  for (const file of files.filter((each) => CODE.test(each) && existsSync(join(ROOT, each)))) {
    const [folder, below] = file.split('/')
    const room =
      WIDE.test(file) && file.split('/').length > 2 ? `${folder}/${below}` : file.includes('/') ? folder : '.'
    const lines = read(file)
      .split('\n')
      .filter((line) => line.trim() !== '' && !COMMENT.test(line.trim())).length
    found[room] ??= { lines: 0, files: 0 }
    found[room].lines += lines
    found[room].files++
  }
  return found
}

/** What npm installs with heddle, as this machine has it: places in the lock file. */
function packages() {
  const { packages: locked } = JSON.parse(read('package-lock.json'))
  const places = new Set()
  const take = (name, from) => {
    for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
      const place = `${at === '' ? '' : `${at}/`}node_modules/${name}`
      if (locked[place] !== undefined) return add(place)
      if (at === '') return
    }
  }
  const add = (place) => {
    if (places.has(place) || !existsSync(join(ROOT, place))) return
    places.add(place)
    const { dependencies = {}, optionalDependencies = {} } = locked[place]
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) take(name, place)
  }
  const { dependencies, optionalDependencies } = packedManifest(JSON.parse(read('package.json')))
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) take(name, '')
  return places
}

function bytesOf(folder) {
  let bytes = 0
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && entry.name !== 'node_modules') bytes += bytesOf(path)
    else if (entry.isFile()) bytes += statSync(path).size
  }
  return bytes
}

/** `1m2.345s 0m6.789s` → 69 */
const secondsIn = (text) =>
  Math.round(
    [...text.matchAll(/(\d+)m([\d.]+)s/g)].reduce((sum, [, min, sec]) => sum + Number(min) * 60 + Number(sec), 0),
  )

function weights(times) {
  const installed = packages()
  const bytes = [...installed].reduce((sum, place) => sum + bytesOf(join(ROOT, place)), 0)
  return {
    version: JSON.parse(read('package.json')).version,
    rooms: rooms(),
    'lines of README.md': read('README.md').trimEnd().split('\n').length,
    'packages with heddle': installed.size + 1,
    'MB of those packages': Math.round(bytes / 1e6),
    ...(times === undefined ? {} : { 'processor seconds of the gate': secondsIn(times) }),
  }
}

function print(now, before) {
  const beside = (value, was) => `${String(value).padStart(8)}${String(was ?? '').padStart(8)}`
  console.log(`\n${'code lines, files'.padEnd(30)}${beside('now', before?.version)}${beside('now', before?.version)}`)
  const names = [...new Set([...Object.keys(now.rooms), ...Object.keys(before?.rooms ?? {})])].sort()
  const totals = (rooms, key) => Object.values(rooms ?? {}).reduce((sum, room) => sum + room[key], 0)
  const row = (name, room, was) =>
    console.log(`${name.padEnd(30)}${beside(room?.lines ?? 0, was?.lines)}${beside(room?.files ?? 0, was?.files)}`)
  for (const name of names) row(name, now.rooms[name], before?.rooms[name])
  const all = (rooms) => ({ lines: totals(rooms, 'lines'), files: totals(rooms, 'files') })
  row('all', all(now.rooms), before && all(before.rooms))
  for (const [name, value] of Object.entries(now))
    if (typeof value === 'number') console.log(`${name.padEnd(30)}${beside(value, before?.[name])}`)
}

const isKept = process.argv.includes('--keep')
const now = weights(process.argv.slice(2).find((each) => !each.startsWith('--')))
print(now, existsSync(KEPT) ? JSON.parse(readFileSync(KEPT, 'utf8')) : null)
if (isKept) writeFileSync(KEPT, `${JSON.stringify(now, null, 2)}\n`)
