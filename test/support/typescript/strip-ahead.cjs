const { existsSync, readdirSync, readFileSync, rmSync, statSync } = require('node:fs')
const { basename, join } = require('node:path')
const { keptFolder } = require('../../../src/preload/typescript/places.cjs')
const { finish, loadEsbuild, optionsOf, strippedFile } = require('../../../src/preload/typescript/strip.cjs')
const { writeWhole } = require('../../../src/preload/typescript/script.cjs')

const WRITTEN_KEPT_MS = 3_600_000

/** Strips files of the project by one process of esbuild: a thread that loads one that is not stripped starts one for it. */
exports.stripAhead = async (paths) => {
  if (keptFolder === null) return
  const files = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }))
  const fresh = files.filter(({ path, text }) => !existsSync(strippedFile(path, text)))
  if (fresh.length === 0) return
  const { stop, transform } = loadEsbuild()
  const stripOne = async ({ path, text }) => {
    const { code } = await transform(text, optionsOf(text, basename(path)))
    writeWhole(strippedFile(path, text), [Buffer.from(finish(path, code))])
  }
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
