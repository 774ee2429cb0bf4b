import { MongoClient } from 'mongodb'

export default (get: (name: string) => string) => async () => {
  const client = new MongoClient(`mongodb://${get('TRIAL_NOWHERE')}`, { serverSelectionTimeoutMS: 100 })
  try {
    return await client.db('looms').collection('looms').findOne({})
  } catch (error) {
    if (!/ServerSelectionError/.test((error as Error).name)) throw error
    return 'refused'
  } finally {
    await client.close()
  }
}
