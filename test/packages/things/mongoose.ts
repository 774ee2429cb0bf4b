import mongoose from 'mongoose'

const Loom = new mongoose.Schema({ name: { type: String, required: true } })

export default (get: (name: string) => string) => async () => {
  const connection = mongoose.createConnection(`mongodb://${get('TRIAL_NOWHERE')}`, { serverSelectionTimeoutMS: 100 })
  try {
    await connection.asPromise()
    return await connection.model('Loom', Loom).findOne({})
  } catch (error) {
    if (!/ServerSelectionError/.test((error as Error).name)) throw error
    return String(new (connection.model('Loom', Loom))({}).validateSync())
  } finally {
    await connection.destroy()
  }
}
