// `boot`: the runtime in a process of its own.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { DeadLetter } from '../../contracts/event-bus.ts'
import type { EventName, Payload, Published } from '../../contracts/events.ts'
import type { PluginHealth } from '../../contracts/registry.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'
import { copyEnvironment, loadSettings } from '../../core/config/load.ts'
import { endWith, isOwner, logText, TestApp, type TestOwner } from './app.ts'
import { startOf, TestClock } from './clock.ts'
import { type DomainChoice, domainFolder, linkDomains } from './domain-folder.ts'
import { RuntimeProcess, type Serving } from './runtime-process.ts'

const START_TIMEOUT_MS = 60_000

export interface BootOptions {
  /** The domains to run, with the hooks of `app.ts` beside them: names of folders in DOMAINS_DIR, or paths. Default: all in DOMAINS_DIR. */
  domains?: readonly DomainChoice[]
  /** Number of lanes. Default 1; take 2 or more for a test of state that lanes share. */
  lanes?: number
  /** Environment variables. From the environment of the test the runtime takes TOOLS_DIR and DOMAINS_DIR alone; it reads no `.env`. */
  env?: Record<string, string>
  /** Where the time of the process begins, as a Date or with its zone: `2026-03-29T00:30:00Z`. Default: now. */
  start?: Date | string
  /** True when plugins may be `DEAD` after the start. Default false: `boot` then throws, with their errors. */
  allowDead?: boolean
}

/** A process of the runtime on a free port of 127.0.0.1, with an empty database of its own. Made by `boot`. */
export class BootedApp extends TestApp {
  /** The health of the plugins after the start. */
  readonly plugins: Readonly<Record<string, PluginHealth>>
  readonly #child: RuntimeProcess

  /** @internal */
  constructor({ port, plugins, movedMs }: Serving, child: RuntimeProcess, stop: () => Promise<void>) {
    let moved = movedMs
    const clock = new TestClock(
      () => moved,
      async (...move) => {
        try {
          await child.call('advance', ...move)
        } finally {
          moved = await child.call('moved').catch(() => moved)
        }
      },
    )
    super(port, clock, child, stop)
    this.plugins = plugins
    this.#child = child
  }

  publish<Name extends EventName>(event: Name, payload: Published<Name>): Promise<string> {
    return this.#child.call('publish', event, payload as Payload)
  }

  deadLetters(): Promise<DeadLetter[]> {
    return this.#child.call('deadLetters')
  }

  jobs(): Promise<JobInfo[]> {
    return this.#child.call('jobs')
  }

  protected pendingAfter(timeoutMs: number): Promise<number> {
    return this.#child.call('idle', timeoutMs)
  }
}

/**
 * Boots the runtime in a process of its own, as `npm start` does: migrations, lanes, listener, jobs. The process ends with the test.
 * When the test fails, the runtime's log is printed.
 * @param t the test; without it, end the runtime by `await using` or by `stop()`
 * @throws when the runtime does not start, or a plugin is `DEAD`; the message says why
 */
export function boot(t: TestOwner, options?: BootOptions): Promise<BootedApp>
export function boot(options?: BootOptions): Promise<BootedApp>
export async function boot(first?: TestOwner | BootOptions, second: BootOptions = {}): Promise<BootedApp> {
  const owner = isOwner(first) ? first : undefined
  const options = owner === undefined ? ((first as BootOptions | undefined) ?? {}) : second
  const outer = loadSettings(copyEnvironment()).settings
  const folders = await Promise.all((options.domains ?? []).map((choice) => domainFolder(choice, outer.domainsDir)))
  const directory = await mkdtemp(join(tmpdir(), 'heddle-app-'))
  const domains =
    options.domains === undefined
      ? outer.domainsDir
      : await linkDomains(join(directory, 'domains'), folders, outer.domainsDir)
  const environment = {
    HTTP_PORT: '0',
    LANES: String(options.lanes ?? 1),
    LOG_FORMAT: 'json',
    SQLITE_PATH: join(directory, 'test.db'),
    HISTORY_ENABLED: 'false',
    AUTH_SECRET_KEY: randomBytes(32).toString('base64url'),
    TOOLS_DIR: outer.toolsDir,
    ...(outer.tools === undefined ? {} : { TOOLS: outer.tools }),
    // It is among them, or was not chosen.
    SYSTEM_DOMAIN: 'false',
    DOMAINS_DIR: domains.join(delimiter),
    ...options.env,
  }
  const child = new RuntimeProcess(environment, options.start === undefined ? [] : [String(startOf(options.start))])
  let ending: Promise<void> | undefined
  const stop = (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    ending ??= child.end(signal).then(() => rm(directory, { recursive: true, force: true }))
    return ending
  }
  // Unfinished work of a test is not needed, so the process is killed instead of drained.
  endWith(
    owner,
    () => stop('SIGKILL'),
    () => logText(child),
  )

  try {
    const serving = await child.serving(START_TIMEOUT_MS)
    if (options.allowDead !== true) refuseDead(serving)
    return new BootedApp(serving, child, () => stop('SIGTERM'))
  } catch (thrown) {
    await stop('SIGKILL')
    throw new Error(`${(thrown as Error).message}\n${logText(child)}`)
  }
}

function refuseDead({ plugins, reasons }: Serving): void {
  const dead = Object.entries(plugins).flatMap(([name, health]) =>
    health.status === 'DEAD' ? [`  ${name}: ${health.error}`] : [],
  )
  if (dead.length > 0) throw new Error(`Plugins did not come up:\n${dead.join('\n')}`)
  if (reasons.length > 0) throw new Error(`The runtime is not ready: ${reasons.join('; ')}`)
}
