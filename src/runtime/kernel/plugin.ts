// A plugin as its author writes it: a class or a function.
import type { Tools } from '../../contracts/tools.ts'

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
  }
}
