/** The testing kit for plugin authors, imported as `heddle/testing`. Works with `node:test` and with any other runner. */

export type { LogEntry, RequestOptions, TestApp, TestOwner, TestResponse, TestUser } from './app.ts'
export { type BootedApp, type BootOptions, boot } from './boot.ts'
export type { AdvanceOptions, TestClock } from './clock.ts'
export { type PluginApp, type PluginOptions, plugin } from './plugin.ts'
export type { EventOptions, PublishedEvent } from './seen-events.ts'
