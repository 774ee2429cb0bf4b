// What every lane needs, whatever the domains hold: loaded ahead of time, in a thread that waits for its lane.
import { workerData } from 'node:worker_threads'
import 'zod'
import '../index.ts'
import { findTools } from '../kernel/discover.ts'
import { loadModule } from '../kernel/load-module.ts'

/** @returns when the tools are loaded; one that does not load says so where it is installed */
export async function warmUp(): Promise<void> {
  const { toolsDir } = workerData as { toolsDir: string }
  for (const { file } of findTools(toolsDir)) await loadModule(file).catch(() => {})
}
