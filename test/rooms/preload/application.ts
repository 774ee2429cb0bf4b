import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Its files are an hour old for a program: one that was changed just now would not be kept. */
const HOUR_LATER = 'const now = Date.now\nDate.now = () => now() + 3_600_000\n'
const PROGRAM = 'node_modules/heddle/dist/src/main.js'
const CLOCK = 'node_modules/heddle/dist/src/hour-later.cjs'

/** An application that has the loader as its package `heddle`, whose program a test writes. */
export class Application {
  readonly folder = mkdtempSync(join(tmpdir(), 'heddle-loader-'))
  readonly kept = join(this.folder, 'node_modules/.cache/heddle-code')
  readonly temporary = join(this.folder, 'tmp')

  constructor(t: TestContext) {
    t.after(() => rmSync(this.folder, { recursive: true, force: true }))
    const source = join(this.folder, 'node_modules/heddle/dist/src')
    cpSync(join(ROOT, 'src/preload'), join(source, 'preload'), { recursive: true })
    cpSync(join(ROOT, 'src/preload.cjs'), join(source, 'preload.cjs'))
    this.write('node_modules/heddle/dist/package.json', '{ "type": "commonjs" }')
    // Beside the runtime: what somebody else preloads might change how modules are loaded.
    this.write(CLOCK, HOUR_LATER)
    this.write('package.json', '{ "type": "module" }')
    for (const name of ['tsx', 'esbuild']) {
      symlinkSync(join(ROOT, 'node_modules', name), join(this.folder, 'node_modules', name))
    }
    mkdirSync(this.temporary, { mode: 0o700 })
  }

  /** The text of `heddle`'s program. */
  program(text: string): void {
    this.write(PROGRAM, text)
  }

  write(path: string, text: string | Buffer): void {
    const file = join(this.folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  /** Runs the program. @returns what it has written, without the line end */
  run(env: Record<string, string> = {}): { stdout: string; stderr: string } {
    const preload = join(this.folder, 'node_modules/heddle/dist/src/preload.cjs')
    const args = ['--require', `./${CLOCK}`, '--require', preload, join(this.folder, PROGRAM)]
    const { stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: this.folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, TMPDIR: this.temporary, ...env },
    })
    return { stdout: stdout.trim(), stderr: stderr.trim() }
  }
}
