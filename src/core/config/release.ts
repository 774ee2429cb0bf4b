// Which release runs: the commit of the application's sources, and the version of heddle.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Digits of a commit that are shown. */
const DIGITS = 12
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
/** What a ref may be called, as git checks it: no name leads out of the folder. */
const REF = /^refs\/(?!.*\.\.)[^\0\\:?*[~^]+$/

/** The first digits of the commit that is checked out in a folder or above it; undefined where there is none. Runs no program. */
export function commitIn(folder: string): string | undefined {
  try {
    const git = gitFolderOf(resolve(folder))
    const commit = git === null ? null : headOf(git)
    return commit !== null && COMMIT.test(commit) ? commit.slice(0, DIGITS) : undefined
  } catch {
    // A repository of another kind, or one that may not be read: nothing is known of the release then.
    return undefined
  }
}

function gitFolderOf(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const path = resolve(at, '.git')
    if (existsSync(path)) return linkedFrom(path) ?? path
    if (at === dirname(at)) return null
  }
}

/** A worktree and a submodule have a file that names the folder. */
function linkedFrom(path: string): string | null {
  if (existsSync(resolve(path, 'HEAD'))) return null
  const target = /^gitdir: (.+)$/m.exec(readFileSync(path, 'utf8'))?.[1]
  return target === undefined ? null : resolve(dirname(path), target)
}

function headOf(git: string): string | null {
  const head = read(resolve(git, 'HEAD'))
  const ref = /^ref: (.+)$/.exec(head ?? '')?.[1]
  if (ref === undefined) return head
  if (!REF.test(ref)) return null
  // The branches of a worktree are in the repository that it belongs to.
  const common = resolve(git, read(resolve(git, 'commondir')) ?? '.')
  return read(resolve(git, ref)) ?? read(resolve(common, ref)) ?? packed(common, ref)
}

function packed(common: string, ref: string): string | null {
  const lines = read(resolve(common, 'packed-refs'))?.split('\n') ?? []
  return lines.find((line) => line.endsWith(` ${ref}`))?.split(' ')[0] ?? null
}

const read = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8').trim() : null)

/** The version of heddle, as its package has it. */
export function heddleVersion(): string {
  for (let at = dirname(fileURLToPath(import.meta.url)); at !== dirname(at); at = dirname(at)) {
    const text = read(resolve(at, 'package.json'))
    if (text === null) continue
    const { name, version } = JSON.parse(text) as { name?: string; version?: string }
    if (name === 'heddle') return version ?? ''
  }
  return ''
}
