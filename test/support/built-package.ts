import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { until } from './until.ts'

const BUILD = fileURLToPath(new URL('../../deploy/package/build.mjs', import.meta.url))
/** Names the folder in which the test processes of one run share what one of them has built. */
const SHARED_VARIABLE = 'HEDDLE_TESTS_SHARED'
/** Compiling takes seconds, and longer beside other tests. */
const BUILT_MS = 180_000

/** Lets all test processes that this one starts share one build, unless whoever started this one does so. @returns removes it */
export function shareBuild(): () => void {
  if (process.env[SHARED_VARIABLE] !== undefined) return () => {}
  const folder = mkdtempSync(join(tmpdir(), 'heddle-tests-shared-'))
  process.env[SHARED_VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/** Puts `dist/` of the package of this checkout into a folder. @param dist absolute, and not there yet */
export async function placeDist(dist: string): Promise<void> {
  const shared = process.env[SHARED_VARIABLE]
  if (shared === undefined) await build(dist)
  else linkTree(await sharedDist(shared), dist)
}

/** Whoever comes first builds it. The others wait. */
async function sharedDist(shared: string): Promise<string> {
  const [dist, begun, ended] = ['dist', 'begun', 'ended'].map((name) => join(shared, name)) as [string, string, string]
  if (claim(begun)) {
    let fault = ''
    try {
      await build(dist)
    } catch (error) {
      fault = String(error)
    }
    writeFileSync(ended, fault)
  }
  await until(() => existsSync(ended), 'the package is built', BUILT_MS)
  const fault = readFileSync(ended, 'utf8')
  if (fault !== '') throw new Error(fault)
  return dist
}

function claim(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch {
    // Another process has it.
    return false
  }
}

async function build(dist: string): Promise<void> {
  await promisify(execFile)(process.execPath, [BUILD, dist])
}

/** A folder with the same files as another, which are not copied: whoever changes one removes it first. */
export function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) linkTree(source, target)
    else {
      try {
        linkSync(source, target)
      } catch {
        // On another file system, or a file of another user.
        copyFileSync(source, target)
      }
    }
  }
}
