import { open } from 'lmdb'

export default (get: (name: string) => string) => {
  const db = open({ path: `${get('TRIAL_FOLDER')}/looms.lmdb` })
  return async () => {
    await db.put('loom', { warp: 1 })
    return db.get('loom')
  }
}
