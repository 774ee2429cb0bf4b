// A plugin as its author writes it, a class or a function: what its file must export, and what is said of anything else.
import type { Tools } from '../../contracts/tool.ts'
import { nearestName } from '../../core/config/nearest-name.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { linesOf, placeInPlugin, placeOfText, shown, showPlace } from '../../core/errors/places.ts'
import { loadModule } from '../../core/modules/domains.ts'
import { classNameOf, type PluginFile } from './discover.ts'

/** Base of every plugin that is a class. All of it is optional. A class that does not extend it works, too, and is warned of outside of production. */
export abstract class Plugin {
  /** Where it lives: `worker` (the default) in every lane, `primary` on the listener's thread. Must be written as a literal. */
  static thread: 'worker' | 'primary' = 'worker'

  /** Registers routes, subscriptions, sinks and jobs. Runs once in every thread that hosts the plugin. */
  onBoot(): void | Promise<void> {}

  /** Runs once per process, when the listener is up. */
  onReady(): void | Promise<void> {}

  /** Runs once in every thread that hosts the plugin, when that thread drains. */
  onStop(): void | Promise<void> {}
}

/** What a plugin does after its boot. */
export type PluginLife = Partial<Pick<Plugin, 'onReady' | 'onStop'>>

/** A plugin that is a function, as the runtime takes it: a class that calls it. */
export interface FunctionPlugin<Given extends object = Tools> {
  new (tools: Given): Plugin
  /** `worker`, unless the options say otherwise. */
  readonly thread: 'worker' | 'primary'
  /** Made where the plugin is: its stack has the file. */
  readonly made: Error
}

/**
 * A plugin as a function, the default export of its file: `export default plugin(({ http }) => { … })`. Its name is that of a class named as the file.
 * @param setup gets the tools, and registers routes, subscriptions, sinks and jobs. It runs once in every thread that hosts the plugin, and may be
 * async. What it returns, if anything, is the rest of the plugin's life
 * @param options `thread: 'primary'` puts it on the listener's thread: must be written as a literal, here. `onReady` and `onStop` count where `setup`
 * returns none
 */
export function plugin<Given extends object = Tools>(
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` has this type
  setup: (tools: Given) => PluginLife | void | Promise<PluginLife | void>,
  options: PluginLife & { thread?: 'worker' | 'primary' } = {},
): FunctionPlugin<Given> {
  if (typeof setup !== 'function') throw new TypeError('plugin takes a function: plugin(({ http }) => { … })')
  return class extends Plugin {
    static override readonly thread = options.thread ?? 'worker'
    static readonly made = new Error('made here')
    readonly #tools: Given
    #life: PluginLife = options

    constructor(tools: Given) {
      super()
      this.#tools = tools
    }

    override async onBoot() {
      this.#life = { ...options, ...(await setup(this.#tools)) }
    }

    override onReady() {
      return this.#life.onReady?.()
    }

    override onStop() {
      return this.#life.onStop?.()
    }

    get hasOnStop() {
      return this.#life.onStop !== undefined
    }
  }
}

export interface PluginInstance {
  onBoot?(): void | Promise<void>
  onReady?(): void | Promise<void>
  onStop?(): void | Promise<void>
  /** Of a plugin that is a function. */
  readonly hasOnStop?: boolean
}

/** True for a plugin with an `onStop` of its own. */
export const hasOnStop = ({ onStop, hasOnStop: isGiven }: PluginInstance): boolean =>
  isGiven ?? (onStop !== undefined && onStop !== Plugin.prototype.onStop)

/** `made` is set for a function, which `plugin` has made a class of. */
export type PluginClass = (new (tools: object) => PluginInstance) & { thread?: unknown; made?: Error }

/** The name of a class, or the one that the file of a function stands for. */
export function nameOf(Class: PluginClass): string {
  const file = Class.name === '' && Class.made ? placeInPlugin(Class.made)?.file : undefined
  return file === undefined ? Class.name : classNameOf(file)
}

/** @throws PLUGIN_INVALID */
export async function loadClass(file: PluginFile): Promise<PluginClass> {
  const module = await loadModule(file.path)
  // `module.exports = plugin(…)` in a file that cannot write it otherwise.
  const Class = (/\.c[jt]s$/.test(file.path) && isClass(module) ? module : module.default) as PluginClass | undefined
  const invalid = (fault: string) => new HeddleError('PLUGIN_INVALID', `${shown(file.path)}${fault}`)
  if (!isClass(Class)) throw invalid(` must have a plugin as its default export: ${instead(module, file.path)}`)
  const thread = Class.thread ?? 'worker'
  if (thread !== file.thread)
    throw invalid(
      `: the thread, 'primary' or 'worker', must be written as a literal: \`static thread = 'primary'\` in the class itself, or \`{ thread: 'primary' }\` in \`export default plugin(…)\``,
    )
  return Class
}

export function isClass(value: unknown): value is PluginClass {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value))
}

const BOTH_WAYS = 'write `export default plugin(({ http }) => { … })` or `export default class … extends Plugin`'

/** What a file without a plugin as its default export has instead, and what to write. */
function instead(module: Record<string, unknown>, file: string): string {
  if (/^\s*(?:module\.)?exports\b/m.test(linesOf(file).join('\n'))) return `it has module.exports instead, ${BOTH_WAYS}`
  if (module.default !== undefined) {
    return `it is ${typeof module.default === 'function' ? 'a function' : `of type ${typeof module.default}`}, ${BOTH_WAYS}`
  }
  const named = Object.keys(module).find((name) => isClass(module[name]))
  if (named !== undefined) {
    const form = (module[named] as PluginClass).made ? 'plugin(…)' : `class ${named}`
    return `it exports ${named} by name, write \`export default ${form}\``
  }
  return `it has none, ${BOTH_WAYS}`
}

const LIFE = ['onBoot', 'onReady', 'onStop']
/** What other frameworks call them. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...{ onInit: 'onBoot', onLoad: 'onBoot', onStart: 'onBoot', onModuleInit: 'onBoot', onRegister: 'onBoot' },
  ...{ onShutdown: 'onStop', onDestroy: 'onStop', onClose: 'onStop', onModuleDestroy: 'onStop' },
}

/** What works in a class and is probably a mistake, for development: each with its line and its fix. */
export function classWarnings(Class: PluginClass, file: string): string[] {
  const warnings: string[] = []
  const warn = (what: string, near: string, fix: string): void => {
    const place = placeOfText(file, near) ?? { file, line: 1, column: 1 }
    warnings.push([what, ...showPlace(place).map((line) => `  ${line}`), `  Fix: ${fix}`].join('\n'))
  }
  const name = Class.name || 'the class'
  if (!isOfPlugin(Class)) {
    const header = `export default class ${Class.name === '' ? '…' : Class.name} extends Plugin`
    warn(`${name} does not extend Plugin`, 'class ', `write \`${header}\`, with import { Plugin } from 'heddle'.`)
  }
  const text = linesOf(file).join('\n')
  for (const method of Object.getOwnPropertyNames(Class.prototype)) {
    if (LIFE.includes(method) || method === 'constructor') continue
    const meant = OTHER_NAMES[method] ?? (/^on/i.test(method) ? nearestName(method, LIFE) : undefined)
    // What the file itself calls, or hands over, is a method of its own.
    if (meant === undefined || text.includes(`.${method}`)) continue
    warn(`Nothing calls ${name}.${method}`, `${method}(`, `did you mean ${meant}?`)
  }
  return warnings
}

/** By name: another copy of the package may have made the class. */
function isOfPlugin(Class: PluginClass): boolean {
  for (let level: unknown = Object.getPrototypeOf(Class); typeof level === 'function'; ) {
    if (level.name === 'Plugin') return true
    level = Object.getPrototypeOf(level)
  }
  return false
}
