import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from '../../support/port.ts'
import { processTree, signalAll } from '../../support/servers/process-tree.ts'
import { until } from '../../support/until.ts'
import { ROOT } from '../docs/sources.ts'
import { placePackage } from '../package/packed.ts'

/** Starts are slow while many tests run. */
const START_MS = 180_000
/** How scripts of the application are run: npm takes longer for it than the command itself. The test checks that they are these. */
const NPM = `npm() {
  case "$1" in
    test|start) heddle "$@" ;;
    run) shift; local name=$1; shift; [ "$1" = -- ] && shift; heddle "$name" "$@" ;;
  esac
}`

export interface Outcome {
  code: number
  output: string
}

/** Somebody who follows the guides: a terminal, another one in which the service runs, and a folder beside the checkout of heddle. */
export class Reader {
  /** Where ports of the guides really are. */
  readonly ports = new Map<string, number>()
  /** The folder in which commands run. */
  cwd: string
  readonly #root: string
  /** What commands have set for those after them. */
  readonly #variables: Record<string, string> = {}
  readonly #others = new Set<ChildProcess>()
  #service: { process: ChildProcess; command: string } | null = null
  #log = ''

  constructor() {
    this.#root = mkdtempSync(join(tmpdir(), 'heddle-guides-'))
    this.cwd = join(this.#root, 'heddle')
    mkdirSync(this.cwd)
    for (const name of ['src', 'node_modules', 'package.json']) symlinkSync(join(ROOT, name), join(this.cwd, name))
  }

  /** What `npm install <packed file>` does, without the network: heddle is built from this checkout, and the packages are its own. */
  async install(): Promise<void> {
    if (!existsSync(join(this.cwd, 'node_modules'))) await placePackage(this.cwd)
  }

  async addPort(named: string): Promise<void> {
    if (!this.ports.has(named)) this.ports.set(named, await freePort())
  }

  goTo(folder: string): void {
    this.cwd = resolve(this.cwd, folder)
  }

  /** Runs one command to its end. @param variable that it sets; others see its value */
  async run(text: string, variable?: string): Promise<Outcome> {
    const after = variable === undefined ? '' : `\nprintf %s "$${variable}"`
    const child = this.#spawn(`${text}${after}`)
    const output = collected(child)
    const [code] = (await once(child, 'close')) as [number | null]
    if (variable !== undefined) this.#variables[variable] = output()
    return { code: code ?? 1, output: output() }
  }

  /** Leaves a command running, until the end. */
  async runBeside(text: string): Promise<void> {
    const child = this.#spawn(`exec ${text.replace(/\s*&$/, '')}`)
    this.#others.add(child)
    const output = collected(child)
    await until(() => output() !== '' || child.exitCode !== null, `${text} says that it is there`, START_MS)
    if (child.exitCode !== null) throw new Error(`${text} has ended\n${output()}`)
  }

  /**
   * The service in its terminal: goes on where it runs already.
   * @param anew `stopped` and started again in order, or `killed` before
   * @returns whether it was started
   */
  async serve(command: string, anew: 'stopped' | 'killed' | null): Promise<boolean> {
    if (this.#service?.command === command && anew === null) return false
    await this.stopService(anew === 'killed' ? 'SIGKILL' : 'SIGTERM')
    const child = this.#spawn(command)
    this.#service = { process: child, command }
    this.#log = ''
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (this.#log += chunk))
    await until(() => this.#log.includes('Serving on') || child.exitCode !== null, `${command} serves`, START_MS)
    if (child.exitCode !== null) throw new Error(`${command} has ended\n${this.#log}`)
    return true
  }

  get isServing(): boolean {
    return this.#service !== null
  }

  /** The service loads what is saved. */
  get isReloading(): boolean {
    return this.#service?.command.includes('npm run dev') === true
  }

  /** All that the service has logged since its start. */
  get log(): string {
    return this.#log
  }

  /** Until the service has taken in what was saved. @param before the length of its log then */
  async untilLoaded(files: readonly string[], before: number): Promise<void> {
    const isCode = files.some((file) => !file.endsWith('.sql'))
    const migrations = files.filter((file) => file.endsWith('.sql') && !file.endsWith('.down.sql'))
    const isLoaded = (): boolean => {
      const log = this.#log.slice(before)
      const last = log.lastIndexOf('changed: reloading the lanes')
      if (isCode && (last === -1 || !/(?:Reloaded in|Not reloaded)/.test(log.slice(last)))) return false
      return migrations.every((file) => log.includes(file.replace(/.*domains\/(\w+)\/migrations\/(.*)\.sql$/, '$1/$2')))
    }
    await until(isLoaded, `what was saved is loaded: ${files}`, START_MS).catch((error) => {
      throw new Error(`${error.message}\n${this.#log.slice(before)}`)
    })
  }

  async stopService(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const service = this.#service
    this.#service = null
    if (service !== null) await ended(service.process, signal)
  }

  /** Ends everything that it has started. */
  async leave(): Promise<void> {
    await this.stopService()
    await Promise.all([...this.#others].map((child) => ended(child, 'SIGKILL')))
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 10 })
  }

  #spawn(text: string): ChildProcess {
    const { PATH, HOME, TMPDIR } = process.env
    return spawn('bash', ['-c', `${NPM}\ncurl() { command curl -sS --max-time 150 "$@"; }\n${text}`], {
      cwd: this.cwd,
      env: {
        HOME,
        TMPDIR,
        PATH: `${join(this.cwd, 'node_modules/.bin')}:${PATH}`,
        HTTP_PORT: `${this.ports.get('8000') ?? 0}`,
        LANES: '1',
        // A guide has a handler that never ends: until it is stopped it takes a core from other tests.
        LANE_STALL_MS: '2000',
        LOG_FORMAT: 'pretty',
        NO_COLOR: '1',
        ...this.#variables,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }
}

function collected(child: ChildProcess): () => string {
  let text = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', (chunk) => (text += chunk))
  return () => text
}

/** In order: the shell ends with what runs in it, and what that has started is its own business. By force: all of them. */
async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  const tree = processTree(child.pid!)
  signalAll(signal === 'SIGKILL' ? tree : [tree[1] ?? tree[0]!], signal)
  const timer = setTimeout(() => signalAll(processTree(child.pid!), 'SIGKILL'), START_MS)
  await closed
  clearTimeout(timer)
}
