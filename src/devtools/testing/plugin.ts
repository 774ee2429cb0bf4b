// `plugin`: one plugin with every tool, in the thread of the test.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import type { DeadLetter } from '../../contracts/event-bus.ts'
import type { EventName, Published } from '../../contracts/events.ts'
import type { JobInfo, JobTime } from '../../contracts/scheduler.ts'
import type { Tools } from '../../contracts/tool.ts'
import { copyEnvironment, loadSettings, prepareEnvironment } from '../../core/config/load.ts'
import { movedMs } from '../../core/schedule/moved-time.ts'
import { newRunId } from '../../primary/jobs/job-clock.ts'
import { RunningJob } from '../../runtime/host/running-job.ts'
import { activeTools, type ToolFolder, toolNameOf } from '../../runtime/kernel/discover.ts'
import type { PluginClass } from '../../runtime/kernel/plugin.ts'
import { endWith, isOwner, logText, TestApp, type TestOwner, type TestUser } from './app.ts'
import { add, begin, moveAll, startOf, TestClock } from './clock.ts'
import { type DomainChoice, domainFolder, linkDomains, rootsOf } from './domain-folder.ts'
import { PluginThread } from './plugin-thread.ts'
import { type EventOptions, type PublishedEvent, pendingAfter } from './seen-events.ts'

/** Implementations that need no server, by the tool's name. */
const IN_MEMORY: Readonly<Record<string, string>> = { db: 'sqlite', state: 'memory-state' }

export interface PluginOptions {
  /**
   * The plugin's domain: the name of a folder in DOMAINS_DIR, or its path. Its migrations and those that they depend on are applied, and the hooks
   * of its `domain.ts` and of `app.ts` run. Without a domain there are no tables and no hooks, and the plugin's name begins with `test.`.
   */
  domain?: DomainChoice
  /** Who calls, in place of what `http.identify` says: `context.user` of every request, null for a stranger. `app.user` changes it. */
  user?: TestUser | null
  /** Environment variables: the runtime's and the plugin's own. */
  env?: Record<string, string>
  /** Where the time of the plugin begins, as a Date or with its zone: `2026-03-29T00:30:00Z`. Default: now. */
  start?: Date | string
}

/** One plugin with real tools, in the thread of the test. Made by `plugin`. */
export class PluginApp<P extends object = object> extends TestApp<PublishedEvent> {
  /** The instance of the plugin. */
  readonly plugin: P
  /** The tools that the plugin has, for the test to prepare data and to check results. */
  readonly tools: Tools
  readonly #thread: PluginThread

  /** @internal */
  constructor(port: number, instance: P, thread: PluginThread, stop: () => Promise<void>) {
    super(port, new TestClock(movedMs, moveAll), thread, stop)
    this.plugin = instance
    this.tools = thread.tools
    this.#thread = thread
  }

  /** Who calls, in place of what `http.identify` says; undefined: what that says. It counts from the next request on. */
  get user(): TestUser | null | undefined {
    return this.#thread.user
  }
  set user(user: TestUser | null | undefined) {
    this.#thread.user = user
  }

  override event<Name extends EventName>(
    name: Name,
    options?: EventOptions<PublishedEvent<Name>>,
  ): Promise<PublishedEvent<Name>> {
    return super.event(name, options as EventOptions<PublishedEvent>) as Promise<PublishedEvent<Name>>
  }

  override events<Name extends EventName>(name?: Name): PublishedEvent<Name>[] {
    return super.events(name) as PublishedEvent<Name>[]
  }

  publish<Name extends EventName>(event: Name, payload: Published<Name>): Promise<string> {
    return this.tools.event_bus.publish(event, payload)
  }

  async deadLetters(): Promise<DeadLetter[]> {
    return this.tools.event_bus.getDeadLetters()
  }

  async jobs(): Promise<JobInfo[]> {
    return this.tools.scheduler.list()
  }

  /**
   * Runs a job now. Jobs run by schedule only when the test moves the clock.
   * @param run what its handler is told. Default: due now, attempt 1, fence 0
   * @throws the error of its handler
   */
  async runJob(name: string, run: Partial<JobTime> = {}): Promise<void> {
    const job = this.#thread.jobs.findLast((each) => each.name === name)
    if (job === undefined) {
      throw new Error(
        `There is no job ${name}; there are: ${this.#thread.jobs.map((each) => each.name).join(', ') || 'none'}`,
      )
    }
    const time: JobTime = { id: newRunId(), askedBy: null, due: new Date(), attempt: 1, fence: 0, ...run }
    await job.handler.call(job.owner.instance, new RunningJob(name, time))
  }

  protected pendingAfter(timeoutMs: number): Promise<number> {
    return pendingAfter(() => this.#thread.hub.pending, timeoutMs)
  }
}

/** A plugin's class, whatever the hooks of its domain add to its tools. */
// biome-ignore lint/suspicious/noExplicitAny: each has its own
type PluginOf<P> = new (tools: any) => P

/**
 * Boots one plugin in this thread, with every tool: `db` is SQLite in a temporary file with the domain's tables, `state` is in memory, events go
 * through the real bus, requests through the real listener. No other plugin is loaded: the test publishes what they would publish.
 * Jobs do not run by themselves: `runJob` runs one, and `clock.advance` those that become due. The plugin ends with the test; when the test fails, the log is printed.
 * @param t the test; without it, end the plugin by `await using` or by `stop()`
 * @throws the error of a tool, of a migration, or of the plugin's constructor, `onBoot` or `onReady`
 */
export function plugin<P extends object>(
  t: TestOwner,
  Class: PluginOf<P>,
  options?: PluginOptions,
): Promise<PluginApp<P>>
export function plugin<P extends object>(Class: PluginOf<P>, options?: PluginOptions): Promise<PluginApp<P>>
export async function plugin<P extends object>(
  ...args: [TestOwner, PluginOf<P>, PluginOptions?] | [PluginOf<P>, PluginOptions?]
): Promise<PluginApp<P>> {
  const owner = isOwner(args[0]) ? args[0] : undefined
  const [Class, options = {}] = (owner === undefined ? args : args.slice(1)) as [PluginClass, PluginOptions?]
  const { domain, env = {}, user, start } = options
  const startMs = start === undefined ? undefined : startOf(start)
  const outer = loadSettings(copyEnvironment()).settings
  const folder = domain === undefined ? undefined : await domainFolder(domain, outer.domainsDir)
  const directory = await mkdtemp(join(tmpdir(), 'heddle-plugin-'))
  let thread: PluginThread | undefined
  let ending: Promise<void> | undefined
  const stop = (): Promise<void> => {
    const discard = (): Promise<void> => rm(directory, { recursive: true, force: true })
    ending ??= thread === undefined ? discard() : thread.stop().finally(discard)
    return ending
  }
  try {
    const places =
      folder === undefined ? [directory] : await linkDomains(join(directory, 'domains'), [folder], outer.domainsDir)
    const { settings } = loadSettings({
      HTTP_PORT: '0',
      HTTP_LISTENER: outer.httpListener,
      SQLITE_PATH: join(directory, 'test.db'),
      AUTH_SECRET_KEY: randomBytes(32).toString('base64url'),
      DOMAINS_DIR: places.join(delimiter),
      ...env,
    })
    prepareEnvironment()
    begin(startMs)
    const own = new PluginThread(settings)
    thread = own
    add(own)
    endWith(owner, stop, () => logText(own))
    own.user = user
    const roots = folder === undefined ? [] : rootsOf([folder], outer.domainsDir)
    const tools = toolsWithoutServers(resolve(outer.toolsDir))
    const name = folder === undefined ? 'test' : basename(folder)
    const { port, instance } = await own.start(tools, env, name, Class, roots)
    return new PluginApp(port, instance as P, own, stop)
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

/** The tools of a process, with those of the runtime in place that need no server. */
function toolsWithoutServers(toolsDir: string): ToolFolder[] {
  const replaced = activeTools(toolsDir, undefined).filter(({ path }) => dirname(path) === toolsDir)
  const chosen = replaced.map(toolNameOf).flatMap((name) => IN_MEMORY[name ?? ''] ?? [])
  return activeTools(toolsDir, chosen.join(','))
}
