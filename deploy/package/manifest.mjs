// What `npm pack` does to package.json, and takes back: `node deploy/package/manifest.mjs packed`, then `… whole`.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FILE = join(ROOT, 'package.json')
const KEPT = join(ROOT, 'node_modules/.cache/heddle/package.json')
/** The driver of Node 20. npm would compile it on newer ones, too: an application that is made on Node 20 asks for it itself. */
const NODE_20_DRIVER = 'better-sqlite3'

/** The manifest of the package, of that of the repository. */
export function packedManifest(manifest) {
  const { optionalDependencies, ...packed } = manifest
  const { [NODE_20_DRIVER]: version, ...others } = optionalDependencies
  return {
    ...packed,
    optionalDependencies: others,
    peerDependencies: { ...manifest.peerDependencies, [NODE_20_DRIVER]: version },
    peerDependenciesMeta: { ...manifest.peerDependenciesMeta, [NODE_20_DRIVER]: { optional: true } },
  }
}

function write() {
  mkdirSync(dirname(KEPT), { recursive: true })
  const text = readFileSync(FILE, 'utf8')
  writeFileSync(KEPT, text)
  writeFileSync(FILE, `${JSON.stringify(packedManifest(JSON.parse(text)), null, 2)}\n`)
}

if (process.argv[2] === 'packed') write()
if (process.argv[2] === 'whole' && existsSync(KEPT)) renameSync(KEPT, FILE)
