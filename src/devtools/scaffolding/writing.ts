import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shown } from '../../core/files/shown-path.ts'
import { Refusal } from './refusal.ts'

const BIOME = fileURLToPath(new URL('../../../node_modules/@biomejs/biome/bin/biome', import.meta.url))

/** One file to be written. */
export interface NewFile {
  /** Absolute. */
  path: string
  text: string
}

/** What a command writes, and what to do with it. */
export interface Scaffold {
  files: NewFile[]
  /** Lines for people: commands as they are, what they do behind `#`. */
  next: string[]
}

/** Writes all of the files or none. @throws Refusal when one of them is there already */
export function write(files: readonly NewFile[]): void {
  const taken = files.filter(({ path }) => existsSync(path))
  if (taken.length > 0) {
    const names = taken.map(({ path }) => shown(path)).join(', ')
    throw new Refusal(`Nothing was written: ${names} ${taken.length === 1 ? 'is' : 'are'} there already`)
  }
  for (const { path, text } of files) {
    mkdirSync(dirname(path), { recursive: true })
    // Whoever was faster keeps what he wrote.
    writeFileSync(path, text, { flag: 'wx' })
  }
  format(files)
}

/** A long name breaks a line, a short one joins two: the formatter knows. Where it is not installed nobody checks the format either. */
function format(files: readonly NewFile[]): void {
  const sources = files.map(({ path }) => path).filter((path) => path.endsWith('.ts'))
  // Without a path it would format the whole project.
  if (sources.length === 0 || !existsSync(BIOME) || !existsSync(join(process.cwd(), 'biome.json'))) return
  try {
    execFileSync(process.execPath, [BIOME, 'check', '--write', ...sources], { stdio: 'pipe' })
  } catch {
    // The files are there and right, only their lines may be broken elsewhere: `npm run check` says so.
  }
}
