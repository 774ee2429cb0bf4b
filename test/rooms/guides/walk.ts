import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { until } from '../../support/until.ts'
import { type Command, isAnswer } from '../docs/readme.ts'
import { missingLine, type Step, stepsOf } from './page.ts'
import type { Outcome, Reader } from './reader.ts'

/** A service in a terminal of its own, with its variables. */
const SERVES = /^(?:[A-Z_]+=\S+ )*npm (?:run dev|start)\b/
const INSTALLS = /^npm (?:install|ci)\b/
/** What needs a network or a server that is not here. The files that it names have to be there. */
const IS_NOT_RUN = /^(?:docker|git|ssh|scp|rsync|npx|systemctl|createdb|npm (?:install|ci|pack|create|update|login))\b/
/** Started anew after it was killed, although nothing asks for it. */
const IS_AGAIN = /# again$/
/** Other tests may have the ports that the guides name. */
const PORT = /\b(?:localhost:|127\.0\.0\.1:)(\d{4,5})\b/g
const SETS = /^([A-Z_]+)=(?:\$\(.*\)|'[^']*'|"[^"]*"|\S*)$/s
/** What only reads may be asked again: what was caused before may be under way still. */
const CHANGES = / (?:-X|-d|-F|-T|--data\S*|--json) ?/
const ANSWERED_MS = 60_000
/** A request of curl is a process. */
const ASKED_AGAIN_MS = 300
/** Threads load these again; the other files need a new process. */
const IS_RELOADED = /^domains\/.*\.(?:[cm]?[jt]s|json|sql)$/
const NEEDS_RESTART = /^(?:\.env$|tools\/)/

/** Does what one guide says, and sees what it shows, in an application that the first guide has made. */
export class Walk {
  readonly #reader: Reader
  /** What was saved since the last command. */
  readonly #saved = new Map<string, string>()
  #needsRestart = false
  /** What the service had logged when the step before the last one began. */
  #logFrom = 0

  constructor(reader: Reader) {
    this.#reader = reader
  }

  async follow(guide: string): Promise<void> {
    for (const [, port] of guide.matchAll(PORT)) await this.#reader.addPort(port!)
    const here = guide.replace(PORT, (named, port) => named.replace(port, `${this.#reader.ports.get(port)}`))
    for (const step of stepsOf(here)) await this.#take(step)
    await this.#load()
  }

  async #take(step: Step): Promise<void> {
    if (step.kind === 'file') return this.#save(step)
    if (step.kind === 'log') {
      await this.#load()
      return this.#see(step.lines)
    }
    await this.#load()
    this.#logFrom = this.#reader.isServing ? this.#reader.log.length : 0
    await this.#type(step.command, step.shown)
  }

  #save({ path, text, isAdded }: Extract<Step, { kind: 'file' }>): void {
    const before = isAdded ? (this.#saved.get(path) ?? this.#read(path)) : ''
    this.#saved.set(path, before + text)
    if (NEEDS_RESTART.test(path)) this.#needsRestart = true
  }

  /** Writes what was saved, all at once, and waits until the service has it. */
  async #load(): Promise<void> {
    if (this.#saved.size === 0) return
    const before = this.#reader.log.length
    this.#logFrom = before
    for (const [path, text] of this.#saved) {
      mkdirSync(dirname(join(this.#reader.cwd, path)), { recursive: true })
      writeFileSync(join(this.#reader.cwd, path), text)
    }
    const reloaded = [...this.#saved.keys()].filter((path) => IS_RELOADED.test(path))
    this.#saved.clear()
    if (this.#reader.isReloading && reloaded.length > 0) await this.#reader.untilLoaded(reloaded, before)
  }

  /** In any order: a request's line is held back for a moment, and a migration runs beside a reload. */
  async #see(lines: string[]): Promise<void> {
    const missing = (): string | undefined => {
      const log = this.#reader.log.slice(this.#logFrom)
      return lines.find((line) => missingLine(log, [line]) !== null)
    }
    await until(() => missing() === undefined, 'the log', ANSWERED_MS).catch(() => {
      assert.fail(`The service is to log\n${missing()}\n${this.#lastLog()}`)
    })
  }

  async #type(command: Command, shown: string[]): Promise<void> {
    const { text } = command
    if (text.startsWith('cd ')) return this.#reader.goTo(text.slice('cd '.length))
    if (SERVES.test(text)) {
      const anew = IS_AGAIN.test(text) ? 'killed' : this.#needsRestart ? 'stopped' : null
      if (await this.#reader.serve(text.replace(/\s+#.*$/, ''), anew)) this.#logFrom = 0
      this.#needsRestart = false
      return this.#see(shown)
    }
    if (IS_NOT_RUN.test(text)) {
      if (INSTALLS.test(text)) await this.#reader.install()
      return this.#checkNamedFiles(text)
    }
    if (/&$/.test(text)) return this.#reader.runBeside(text)
    await this.#run(command, shown)
  }

  async #run({ text, answer }: Command, shown: string[]): Promise<void> {
    const [, variable] = SETS.exec(text) ?? []
    const isRequest = text.includes('curl ')
    const isPlain = answer === null && shown.length === 0
    // A refusal that is shown is a success of the command.
    const script = isRequest && isPlain ? text.replace(/\bcurl /, 'curl --fail ') : text
    const mayRepeat = isRequest && !CHANGES.test(text)
    const deadlineMs = Date.now() + (mayRepeat ? ANSWERED_MS : 0)
    for (;;) {
      const outcome = await this.#reader.run(script, variable)
      const fault = faultOf(outcome, answer, shown, variable)
      if (fault === null) return
      if (Date.now() >= deadlineMs)
        assert.fail(`${text}\n${fault}\nIt has printed (exit ${outcome.code})\n${outcome.output}\n${this.#lastLog()}`)
      await new Promise((resolve) => setTimeout(resolve, ASKED_AGAIN_MS))
    }
  }

  #lastLog(): string {
    return `The service has logged\n${this.#reader.log.slice(this.#logFrom).slice(-2000)}`
  }

  #read(path: string): string {
    const file = join(this.#reader.cwd, path)
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  }

  /** A command that is not run here can still name a file that nobody has. */
  #checkNamedFiles(text: string): void {
    for (const [, path] of text.matchAll(/ -f (\S+)/g)) {
      assert.ok(existsSync(join(this.#reader.cwd, path!)), `${text}: there is no ${path}`)
    }
    if (text.startsWith('docker build')) assert.ok(existsSync(join(this.#reader.cwd, 'Dockerfile')), text)
  }
}

/** What is wrong with the outcome of a command, or null. */
function faultOf({ code, output }: Outcome, answer: string | null, shown: string[], variable?: string): string | null {
  if (variable !== undefined && output === '') return `sets no ${variable}`
  if (answer !== null) return isAnswer(output, answer) ? null : `is to answer\n${answer}`
  const missing = missingLine(output, shown)
  if (missing !== null) return `is to print\n${missing}`
  // Lines that are shown may be those of a failure.
  return code === 0 || shown.length > 0 ? null : 'is to succeed'
}
