// Boots setups and plugins, in order, each alone.
import { join } from 'node:path'
import type { Owner } from '../../contracts/common.ts'
import type { PluginHealth } from '../../contracts/registry.ts'
import type { ToolHost } from '../../contracts/tool.ts'
import type { Origin } from '../../contracts/tracing.ts'
import { causality } from '../../core/causality/context.ts'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance, messageOf, readable, stackOf, textOf } from '../../core/errors/description.ts'
import { shown } from '../../core/errors/places.ts'
import { loadModule, moduleIn, OPERATORS_DOMAIN } from '../../core/modules/domains.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { turn, withTimeout } from '../../core/schedule/waiting.ts'
import { type BootStage, bootFault } from '../advice/boot-fault.ts'
import type { FixFacts } from '../advice/fixes.ts'
import { classNameOf, findPlugins, type PluginFile } from './discover.ts'
import {
  classWarnings,
  hasOnStop,
  isClass,
  loadClass,
  nameOf,
  type PluginClass,
  type PluginInstance,
} from './plugin.ts'
import type { Toolbox } from './toolbox.ts'

/** A file that registers hooks for more than one plugin. */
export interface SetupFile {
  readonly hooksOf: 'domain' | 'application'
  /** Null of an application. */
  readonly domain: string | null
  /** What its hooks do is done by it: `shop.domain`, `app`. */
  readonly name: string
  readonly path: string
}

/**
 * `app.ts` of each of the domains' folders, then `domain.ts` of each domain, as far as they are for one of the plugins: code that is for none of a
 * thread's plugins is not loaded there.
 */
export function findSetups(
  domainsDirs: readonly string[],
  plugins: readonly Pick<PluginFile, 'domain'>[],
): SetupFile[] {
  const domains = new Set(plugins.map(({ domain }) => domain))
  const isOfApplication = [...domains].some((domain) => domain !== OPERATORS_DOMAIN)
  const applications = domainsDirs.flatMap((root): SetupFile[] => {
    const path = isOfApplication ? moduleIn(root, 'app') : undefined
    return path === undefined ? [] : [{ hooksOf: 'application', domain: null, name: 'app', path }]
  })
  const ofDomains = domainsDirs.flatMap((root) =>
    [...domains].sort().flatMap((domain): SetupFile[] => {
      const path = moduleIn(join(root, domain), 'domain')
      return path === undefined ? [] : [{ hooksOf: 'domain', domain, name: `${domain}.domain`, path }]
    }),
  )
  return [...applications, ...ofDomains]
}

/** True when the hooks of the file are for the plugins of the domain. */
function isFor(setup: SetupFile, domain: string): boolean {
  return setup.domain === null ? domain !== OPERATORS_DOMAIN : setup.domain === domain
}

/** Loads the function of a setup. @throws PLUGIN_INVALID */
async function loadSetup({ path }: SetupFile): Promise<(tools: object) => unknown> {
  const run = (await loadModule(path)).default
  if (typeof run === 'function' && !isClass(run)) return run as (tools: object) => unknown
  throw new HeddleError(
    'PLUGIN_INVALID',
    `${shown(path)} must have a function as its default export: \`export default ({ http }: Tools) => http.before(…)\``,
  )
}

/** How often it is looked at what is still under way, milliseconds. */
const LOOK_MS = 10
/** Of `process.getActiveResourcesInfo`: calls that end by themselves. Sockets, servers and ports stay for as long as a service runs. */
const CALL = /Req(?:Callback|Promise|Wrap)$|ConnectWrap$/

/** What plugins have begun in their boot and that goes on after it: timers, and calls of files, names and servers. */
export class BootAftermath {
  readonly #openCalls: () => number
  readonly #timersBefore = timers()

  /**
   * Made before the first plugin boots.
   * @param openCalls to the primary
   */
  constructor(openCalls: () => number = () => 0) {
    this.#openCalls = openCalls
  }

  /**
   * Resolves when what the plugins have begun is over, or the time is. What throws meanwhile ends the lane as the boot itself would.
   * An interval is never over.
   * @param withTimers false: for what is not a timer
   */
  async over(maxMs: number, withTimers = true): Promise<void> {
    const deadlineMs = steadyMs() + maxMs
    // A rejection that nobody handles shows in the first turn of the loop, and a connection is begun in it.
    await turn()
    await turn()
    while (this.#isUnderWay(withTimers) && steadyMs() < deadlineMs)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS).unref())
  }

  #isUnderWay(withTimers: boolean): boolean {
    if (this.#openCalls() > 0 || (withTimers && timers() > this.#timersBefore)) return true
    return count((kind) => CALL.test(kind)) > 0
  }
}

const timers = (): number => count((kind) => kind === 'Timeout')

const count = (isMeant: (kind: string) => boolean): number => process.getActiveResourcesInfo().filter(isMeant).length

type Loaded = Owner & { instance: PluginInstance }

/** A plugin, or a file with hooks, while it boots. */
interface Booting {
  name: string
  /** Null where no file is read: its class is loaded already. */
  readonly path: string | null
  stage: BootStage
  /** Names of the tools that it took. */
  readonly touched: Set<string>
}

const booting = (name: string, path: string | null): Booting => ({ name, path, stage: 'load', touched: new Set() })

export interface BootOptions {
  /** Plugins that are not booted, by file, each with the reason. */
  barred?: Readonly<Record<string, string>>
  /** Files of plugins that another thread is booting still. */
  waiting?: readonly string[]
  /** Told of each plugin's file before it is loaded. */
  onNext?: (file: string) => void
  /** A plugin that takes longer than this, milliseconds, goes on while the next ones boot. Left out: they wait for it. */
  patienceMs?: number
  /** Told when such a plugin has booted or failed. */
  onLate?: (plugin: string) => void
  /** Waits for what a plugin has begun in its boot, where the thread goes on after an error that nobody catches (`strayed`). */
  settled?: () => Promise<void>
}

const SLOW = 'It takes long to boot: all others are served meanwhile'

/** Each `onStop` has this long, or SHUTDOWN_TIMEOUT_MS where that is more: a thread that never leaves would keep its memory. */
const STOP_TIMEOUT_MS = 30_000
/** After the `onStop` of all plugins, an `onReady` that still runs has this long to end. */
const READY_END_MS = 5_000

/** The plugins of one thread. A plugin that fails is `DEAD`, and all others boot. */
export class Plugins {
  /** The state of each plugin that belongs to this thread, by its name. */
  readonly health: Record<string, PluginHealth> = {}
  /** Why dead plugins failed, for their authors: the mistake, the line, how to fix it. */
  readonly faults: Record<string, string> = {}
  /** Absolute path of each plugin's file, by its name. */
  readonly files: Record<string, string> = {}
  /** What helps to fix the mistakes of their code. */
  readonly facts: FixFacts
  /** Told of each plugin that has booted. Throws what is wrong with what it has registered. */
  onBooted: (plugin: string) => void = () => {}
  /** Runs what a stage of a boot does at once. */
  runStage: <T>(file: string, stage: () => T) => T = (_, stage) => stage()
  /** Told of a file with hooks that did not boot: what it should guard must not be served. */
  onUnguarded: (setup: SetupFile) => void = () => {}
  readonly #thread: 'primary' | 'worker'
  readonly #settings: Settings
  readonly #toolbox: Toolbox
  readonly #writeLog: ToolHost['writeLog']
  readonly #loaded: Loaded[] = []
  /** Each `onReady` that runs, by plugin. */
  readonly #getReady = new Map<string, Promise<void>>()
  #isStopping = false
  /** Their hooks are missing. */
  readonly #failedSetups: SetupFile[] = []
  /** File of the plugin that is being booted; null when none is. */
  bootingFile: string | null = null
  /** What was thrown while it booted, where nobody catches it, by the plugin's file. */
  readonly #strays = new Map<string, string>()
  #settled: () => Promise<void> = turn
  readonly #late = new Set<string>()

  /** @param thread the kind of its plugins */
  constructor(thread: 'primary' | 'worker', settings: Settings, toolbox: Toolbox, writeLog: ToolHost['writeLog']) {
    this.#thread = thread
    this.#settings = settings
    this.#toolbox = toolbox
    this.#writeLog = writeLog
    this.facts = {
      domainsDirs: settings.domainsDir,
      tools: () => toolbox.names,
      methodsOf: (tool) => toolbox.methodsOf(tool),
      fileOf: (plugin) => this.files[plugin],
    }
  }

  /** Loads, constructs and boots all plugins of this kind of thread, in the order of their files. */
  async boot(options: BootOptions): Promise<void> {
    const { barred = {}, waiting = [], onNext, settled = turn, patienceMs, onLate } = options
    const { domainsDir } = this.#settings
    this.#settled = settled
    const all = findPlugins(domainsDir)
    const own = all.filter((file) => file.thread === this.#thread)
    // Lanes serve the folders that plugins of the primary mount, so they have the hooks of all domains.
    for (const setup of findSetups(domainsDir, this.#thread === 'worker' ? all : own)) {
      onNext?.(setup.path)
      this.bootingFile = setup.path
      await this.#bootSetup(setup, barred[setup.path])
    }
    for (const file of own) {
      if (waiting.includes(file.path)) {
        const name = nameByFile(file)
        this.health[name] = { status: 'BOOTING', error: SLOW, tools: [] }
        this.files[name] = file.path
        continue
      }
      onNext?.(file.path)
      this.bootingFile = file.path
      const booted = this.#bootOne(file, barred[file.path]).then(() => 'booted' as const)
      if (patienceMs === undefined) await booted
      else if ((await withTimeout(booted, patienceMs, 'late')) === 'late') this.#follows(file, booted, onLate)
    }
    this.bootingFile = null
  }

  /** Runs a `domain.ts` or `app.ts`. When it fails, the plugins that it should guard do not boot. */
  async #bootSetup(setup: SetupFile, barredFor: string | undefined): Promise<void> {
    const { name, path, domain } = setup
    const boot = booting(name, path)
    try {
      if (barredFor !== undefined) throw new HeddleError('PLUGIN_BARRED', barredFor)
      await this.#runSetup(setup, boot)
      await this.#requireNoStray(path)
      if (this.health[name]?.status !== 'DEAD') this.#booted(boot, domain ?? name)
    } catch (thrown) {
      this.#failedSetups.push(setup)
      this.onUnguarded(setup)
      await this.#failed(boot, thrown)
    }
    this.files[name] = path
  }

  async #runSetup(setup: SetupFile, boot: Booting): Promise<void> {
    const { name, hooksOf } = setup
    const run = await this.#inStage(boot, 'load', () => loadSetup(setup))
    const tools = this.#toolbox.injection({ name, instance: undefined, hooksOf }, boot.touched)
    await this.#inStage(boot, 'onBoot', () => run(tools))
  }

  /** Nobody waits for the plugin any more. */
  #follows(file: PluginFile, booted: Promise<unknown>, onLate: BootOptions['onLate']): void {
    const [name = nameByFile(file)] = Object.entries(this.files).find(([, path]) => path === file.path) ?? []
    this.#late.add(name)
    this.health[name] = { status: 'BOOTING', error: SLOW, tools: [] }
    void booted.then(() => {
      this.#late.delete(name)
      onLate?.(name)
    })
  }

  /** True for a plugin that boots still, while the others are up. */
  isLate(plugin: string): boolean {
    return this.#late.has(plugin)
  }

  async #bootOne(file: PluginFile, barredFor: string | undefined): Promise<void> {
    const boot = booting(nameByFile(file), file.path)
    try {
      if (barredFor !== undefined) throw new HeddleError('PLUGIN_BARRED', barredFor)
      const unguarded = this.#failedSetups.find((setup) => isFor(setup, file.domain))
      if (unguarded !== undefined)
        throw new HeddleError(
          'PLUGIN_UNGUARDED',
          `${shown(unguarded.path)} did not boot, whose hooks are for its routes`,
        )
      const Class = await this.#inStage(boot, 'load', () => loadClass(file))
      if (Class.name !== '') boot.name = `${file.domain}.${Class.name}`
      const { name } = boot
      if (this.health[name] !== undefined) {
        boot.name = `${name} (${shown(file.path)})`
        throw new HeddleError('PLUGIN_DUPLICATE', `${shown(file.path)}: there is another plugin named ${name}`)
      }
      this.files[name] = file.path
      await this.#construct(boot, Class)
      await this.#requireNoStray(file.path)
      this.#booted(boot, file.domain)
      // In production nobody would read of what is probably a mistake.
      if (this.#settings.nodeEnv === 'production') return
      for (const warning of classWarnings(Class, file.path))
        this.#writeLog('WARNING', `Plugin ${name}: ${warning}`, 'kernel', { plugin: name, stage: 'boot' })
    } catch (thrown) {
      await this.#failed(boot, thrown)
    }
  }

  #booted({ name, touched }: Booting, domain: string): void {
    this.health[name] = { status: 'OK', domain, tools: [...touched] }
  }

  /** A plugin or a setup has not booted. Waits for what it still throws into the loop, so that it is not taken for the next one's. */
  async #failed({ name, path, stage, touched }: Booting, thrown: unknown): Promise<void> {
    const context = { file: path!, stage, facts: this.facts }
    // What was thrown may be readable once, or not at all.
    const fault =
      readable(() => bootFault(isInstance(thrown, Error) ? thrown : textOf(thrown), context)) ??
      bootFault(new Error(messageOf(thrown)), context)
    this.health[name] = { status: 'DEAD', error: fault.status, tools: [...touched] }
    this.faults[name] = fault.text
    this.#told(name, 'boot', fault.text)
    await turn()
  }

  /** The plugin that is being booted has thrown what nobody catches: it fails. */
  strayed(reason: string): void {
    if (this.bootingFile !== null && !this.#strays.has(this.bootingFile)) this.#strays.set(this.bootingFile, reason)
  }

  /** A plugin that has booted is not to be served any more. @param error why, for `/system/status` */
  fail(name: string, error: string): void {
    this.health[name] = { status: 'DEAD', error, tools: this.health[name]?.tools ?? [] }
    this.#told(name, 'boot', error)
  }

  /** Lets come up what the boot has thrown into the loop of the thread, or rejected with nobody waiting. @throws that */
  async #requireNoStray(file: string): Promise<void> {
    await this.#settled()
    const stray = this.#strays.get(file)
    if (stray !== undefined) throw new HeddleError('PLUGIN_BARRED', stray)
  }

  /**
   * Constructs and boots one plugin whose class is loaded already, after the hooks that are for it.
   * @param domainsDirs folders with the `app.ts` and the domain of the plugin
   * @throws what the file of hooks, its constructor or `onBoot` throws
   */
  async add(domain: string, Class: PluginClass, domainsDirs: readonly string[] = []): Promise<object> {
    const boot = booting(`${domain}.${nameOf(Class)}`, null)
    for (const setup of findSetups(domainsDirs, [{ domain }])) await this.#runSetup(setup, boot)
    const instance = await this.#construct(boot, Class)
    this.#booted(boot, domain)
    return instance
  }

  async #construct(boot: Booting, Class: PluginClass): Promise<PluginInstance> {
    const owner: Owner = { name: boot.name, instance: undefined }
    const tools = this.#toolbox.injection(owner, boot.touched)
    const instance = this.#inStage(boot, 'constructor', () => new Class(tools))
    owner.instance = instance
    await this.#inStage(boot, 'onBoot', () => instance.onBoot?.())
    this.onBooted(owner.name)
    this.#loaded.push(owner as Loaded)
    return instance
  }

  /**
   * Runs `onReady` of all plugins, or of some. A plugin whose `onReady` fails stays: its routes are up already.
   * @param onDone told of each plugin whose `onReady` has ended
   */
  async ready(plugins?: readonly string[], onDone: (plugin: string) => void = () => {}): Promise<void> {
    for (const loaded of this.#loaded) {
      const { name } = loaded
      if (plugins !== undefined && !plugins.includes(name)) continue
      const running = this.#run('onReady', loaded)
      this.#getReady.set(name, running)
      await running
      this.#getReady.delete(name)
      // What ends because its thread does has not been done: another thread begins it again.
      if (!this.#isStopping) onDone(name)
    }
  }

  /**
   * Runs `onStop` of all plugins. One that takes too long goes on beside the next, and is left behind. Then it waits a while for the `onReady` that such
   * a plugin has told to end: it may close a consumer.
   */
  async stop(): Promise<void> {
    this.#isStopping = true
    const timeoutMs = Math.max(STOP_TIMEOUT_MS, this.#settings.shutdownTimeoutMs)
    for (const loaded of this.#loaded) {
      const isLate = await withTimeout(this.#run('onStop', loaded), timeoutMs, true)
      if (isLate) this.#told(loaded.name, 'onStop', `it has not ended within ${timeoutMs / 1000} s`)
    }
    const told = this.#loaded.filter(({ instance }) => hasOnStop(instance)).map(({ name }) => this.#getReady.get(name))
    await withTimeout(Promise.all(told), READY_END_MS, undefined)
  }

  async #run(stage: 'onReady' | 'onStop', { name, instance }: Loaded): Promise<void> {
    try {
      await this.#asOrigin({ plugin: name, handler: stage }, () => instance[stage]?.())
    } catch (error) {
      this.#told(name, stage, error)
    }
  }

  /** Logs a fault in the code of a plugin. */
  #told(plugin: string, stage: string, error: unknown): void {
    const fields = { plugin, stage, stack: stackOf(error) }
    this.#writeLog('ERROR', `Plugin ${plugin} failed in ${stage}: ${messageOf(error)}`, 'kernel', fields)
  }

  #inStage<T>(boot: Booting, stage: BootStage, run: () => T): T {
    boot.stage = stage
    const origin = { plugin: boot.name, handler: stage }
    const { path } = boot
    if (path === null) return this.#asOrigin(origin, run)
    return this.#asOrigin({ ...origin, bootFile: path }, () => this.runStage(path, run))
  }

  /** Runs a part of a plugin's life as the origin of all that it leaves behind: intervals, sockets, watchers. */
  #asOrigin<T>(origin: Origin, run: () => T): T {
    // The primary has no use for it: a context would cost all of its promises time.
    if (this.#thread === 'primary') return run()
    return causality.run({ eventId: null, requestId: null, trace: null, origin }, run)
  }
}

/** As a class of the file's name would be named. */
function nameByFile({ domain, path }: PluginFile): string {
  return `${domain}.${classNameOf(path)}`
}
