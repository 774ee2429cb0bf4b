// The files that a command writes: their templates with the names filled in, and how they come to where they belong.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError } from '../../core/config/command-line.ts'
import { shown } from '../../core/errors/places.ts'

const BIOME = fileURLToPath(new URL('../../../node_modules/@biomejs/biome/bin/biome', import.meta.url))
const TEMPLATES = fileURLToPath(new URL('./templates', import.meta.url))

/** A file to write. */
export interface NewFile {
  /** Absolute. */
  path: string
  text: string
}

/** The files that a command writes, and the commands to run next. */
export interface Scaffold {
  files: NewFile[]
  /** Lines to print: a command, and behind `#` its purpose. */
  next: string[]
}

/** The text of a template, with a value for each `{{name}}` in it. @param name its path below `templates/`, without `.tpl` */
export function filled(name: string, values: Readonly<Record<string, string>> = {}): string {
  return readFileSync(join(TEMPLATES, `${name}.tpl`), 'utf8').replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
    const value = values[key]
    if (value === undefined) throw new Error(`The template ${name} has no value for ${key}`)
    return value
  })
}

/** Writes all of the files or none. @throws CommandError when one of them exists already */
export function write(files: readonly NewFile[]): void {
  const taken = files.filter(({ path }) => existsSync(path))
  if (taken.length > 0) {
    const names = taken.map(({ path }) => shown(path)).join(', ')
    throw new CommandError(`Nothing was written: ${names} ${taken.length === 1 ? 'is' : 'are'} there already`)
  }
  for (const { path, text } of files) {
    mkdirSync(dirname(path), { recursive: true })
    // A file that another process has written meanwhile is kept.
    writeFileSync(path, text, { flag: 'wx' })
  }
  format(files)
}

/** Prints what was written, and what to run next. */
export function report(written: readonly string[], next: readonly string[]): void {
  const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`)
  console.log(['Wrote', ...indented(written), 'Next', ...indented(next)].join('\n'))
}

/** Formats the files, since line breaks depend on the length of the names. Without an installed formatter the files stay as they are. */
function format(files: readonly NewFile[]): void {
  const sources = files.map(({ path }) => path).filter((path) => path.endsWith('.ts'))
  // Without a path it would format the whole project.
  if (sources.length === 0 || !existsSync(BIOME) || !existsSync(join(process.cwd(), 'biome.json'))) return
  try {
    execFileSync(process.execPath, [BIOME, 'check', '--write', ...sources], { stdio: 'pipe' })
  } catch {
    // The files are written and correct, only their format may be off, which `npm run check` reports.
  }
}
