// Strips many files by one process of esbuild.
const { existsSync, readdirSync, readFileSync, rmSync, statSync } = require('node:fs')
const { join } = require('node:path')
const { keptFolder, ROOT } = require('../kept-folder.cjs')
const { keep, loadEsbuild, optionsOf, strippedFile } = require('./strip.cjs')

const WRITTEN_KEPT_MS = 3_600_000
/** What a service loads; the tools around it are loaded one at a time. */
const SERVICE = ['src', 'workers', 'domains']
const TOOLS = join(ROOT, 'src/devtools/')

/** Strips files of the project by one process of esbuild: a thread that loads one that is not stripped starts one for it. */
exports.stripAhead = async (paths) => {
  if (keptFolder === null) return
  const files = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }))
  const fresh = files.filter(({ path, text }) => !existsSync(strippedFile(path, text)))
  if (fresh.length === 0) return
  const { stop, transform } = loadEsbuild()
  const stripOne = async ({ path, text }) => keep(path, text, await transform(text, optionsOf(path, text)))
  // What has a fault says so when it is loaded.
  await Promise.allSettled(fresh.map(stripOne))
  await stop()
}

/** Removes what is kept of files that tests wrote some time ago: they may be different ones each time. */
exports.forgetWritten = () => {
  if (keptFolder === null) return
  const written = join(keptFolder, 'written')
  for (const name of readdirSync(written)) {
    const { mtimeMs } = statSync(join(written, name), { throwIfNoEntry: false }) ?? {}
    if (mtimeMs < Date.now() - WRITTEN_KEPT_MS) rmSync(join(written, name), { force: true })
  }
}

function filesOfService() {
  return SERVICE.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(ROOT, folder, name)),
  ).filter((path) => /(?<!\.d)\.ts$/.test(path) && !path.startsWith(TOOLS))
}

if (require.main === module) void exports.stripAhead(filesOfService())
