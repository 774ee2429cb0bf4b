/** The testing kit for plugin authors, imported as `heddle/testing`. Works with `node:test` and with any other runner. */

export type { EventOptions, LogEntry, RequestOptions, TestApp, TestResponse, TestUser } from './app.ts'
export { type BootOptions, boot } from './boot.ts'
export type { BootedApp } from './booted-app.ts'
export type { TestOwner } from './owner.ts'
export { type PluginOptions, plugin } from './plugin.ts'
export type { PluginApp, PublishedEvent } from './plugin-app.ts'
