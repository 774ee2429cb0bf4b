/** Base of every plugin. All of it is optional. A class that does not extend it works, too, and is warned of outside of production. */
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
