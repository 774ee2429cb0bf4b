/** Base of every plugin. All of it is optional: a class with a constructor is a plugin too. */
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
