import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import type { Payload } from '../../contracts/payload.ts'
import { copyEnvironment, loadSettings, prepareEnvironment } from '../../core/config/load.ts'
import type { Settings } from '../../core/config/schema.ts'
import type { PluginClass } from '../../runtime/kernel/plugin-class.ts'
import type { TestUser } from './app.ts'
import { type DomainChoice, domainFolder, linkDomains, rootsOf } from './domain-folder.ts'
import { EventLog } from './event-log.ts'
import { logText } from './log-text.ts'
import { failureOf, isOwner, type TestOwner } from './owner.ts'
import { PluginApp, type PublishedEvent } from './plugin-app.ts'
import { PluginThread } from './plugin-thread.ts'
import { inMemoryTools } from './tool-folder.ts'

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
}

/** A plugin's class, whatever the hooks of its domain add to its tools. */
// biome-ignore lint/suspicious/noExplicitAny: each has its own
type PluginOf<P> = new (tools: any) => P

/**
 * Boots one plugin in this thread, with every tool: `db` is SQLite in a temporary file with the domain's tables, `state` is in memory, events go
 * through the real bus, requests through the real listener. No other plugin is loaded: the test publishes what they would publish.
 * Jobs are registered but do not run by schedule: `runJob` runs one. The plugin ends with the test; when the test fails, the log is printed.
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
  const { domain, env = {}, user } = options
  const outer = loadSettings(copyEnvironment()).settings
  const folder = domain === undefined ? undefined : await domainFolder(domain, outer.domainsDir)
  const directory = await mkdtemp(join(tmpdir(), 'heddle-plugin-'))
  const discard = (): Promise<void> => rm(directory, { recursive: true, force: true })
  const parts = await prepare(directory, folder, env, outer).catch(async (thrown) => {
    await discard()
    throw thrown
  })

  const events = new EventLog<PublishedEvent>()
  const payloads = new Map<string, Payload>()
  const thread = new PluginThread({
    ...parts,
    env,
    // Event records hold no payload values, so the payloads are kept on their way to the driver.
    driver: (driver) => ({
      publish: (event, origin) => {
        payloads.set(event.id, JSON.parse(event.payload))
        return driver.publish(event, origin)
      },
      request: (event, origin, timeoutMs) => {
        payloads.set(event.id, JSON.parse(event.payload))
        return driver.request(event, origin, timeoutMs)
      },
      deadLetters: (page) => driver.deadLetters(page),
      replayDeadLetter: (id) => driver.replayDeadLetter(id),
      editDeadLetter: (id, json, keys) => driver.editDeadLetter(id, json, keys),
      deleteDeadLetter: (id) => driver.deleteDeadLetter(id),
    }),
  })
  thread.hub.records.addListener((record) => events.add({ ...record, data: payloads.get(record.id)! }))
  thread.hub.records.addFailureListener((failure) => events.addFailure(failure))

  let ending: Promise<void> | undefined
  const stop = (): Promise<void> => {
    ending ??= thread.stop().finally(() => {
      events.end('the plugin was stopped')
      return discard()
    })
    return ending
  }
  owner?.after(async () => {
    await stop()
    if (failureOf(owner) !== undefined) console.error(logText({ logs: thread.logs, otherOutput: [] }))
  })
  try {
    thread.user = user
    const roots = folder === undefined ? [] : rootsOf([folder], outer.domainsDir)
    const { port, instance } = await thread.start(folder === undefined ? 'test' : basename(folder), Class, roots)
    return new PluginApp({ port, instance: instance as P, thread, events, stop })
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

/** The settings of one test, its domain and its tools. */
async function prepare(directory: string, domain: string | undefined, env: Record<string, string>, outer: Settings) {
  const domains = join(directory, 'domains')
  await mkdir(domains)
  const places = domain === undefined ? [domains] : await linkDomains(domains, [domain], outer.domainsDir)
  const { settings } = loadSettings({
    HTTP_PORT: '0',
    HTTP_LISTENER: outer.httpListener,
    SQLITE_PATH: join(directory, 'test.db'),
    AUTH_SECRET_KEY: randomBytes(32).toString('base64url'),
    DOMAINS_DIR: places.join(delimiter),
    ...env,
  })
  prepareEnvironment()
  return { settings, toolsDir: await inMemoryTools(outer.toolsDir, directory) }
}
