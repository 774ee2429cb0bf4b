// What `npm pack` does to package.json, and takes back: `node deploy/package/manifest.mjs packed`, then `… whole`.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FILE = join(ROOT, 'package.json')
const KEPT = join(ROOT, 'node_modules/.cache/heddle/package.json')
/** As `src/preload/launch.cjs` checks. Not in the repository, whose scripts run on the Node that it brings along: npm would warn of its own. */
const ENGINES = { node: '^22.15.0 || >=24.0.0' }
/** The listener, a package for each platform. What else is optional in the repository is its Node, what the package has itself, and what an application installs if it uses it. */
const LISTENER = /^@uwsjs\//

/** The manifest of the package, of that of the repository: what is compiled is CommonJS, by the names that its sources have. */
export function packedManifest(manifest) {
  const optionalDependencies = Object.fromEntries(
    Object.entries(manifest.optionalDependencies).filter(([name]) => LISTENER.test(name)),
  )
  const imports = Object.fromEntries(
    Object.entries(manifest.imports).map(([name, path]) => [name, `./dist/${path.slice(2).replace(/\.ts$/, '.js')}`]),
  )
  return { ...manifest, type: 'commonjs', imports, engines: ENGINES, optionalDependencies }
}

function write() {
  mkdirSync(dirname(KEPT), { recursive: true })
  const text = readFileSync(FILE, 'utf8')
  writeFileSync(KEPT, text)
  writeFileSync(FILE, `${JSON.stringify(packedManifest(JSON.parse(text)), null, 2)}\n`)
}

if (process.argv[2] === 'packed') write()
if (process.argv[2] === 'whole' && existsSync(KEPT)) renameSync(KEPT, FILE)
