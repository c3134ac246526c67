//! Policies written by others: factories by name, one table each for active, passive and availability policies, so the
//! same name can stand for three different things.
//!
//! Built-in policies are no entries here: the model has typed options for them, and their names are refused when the
//! configuration is read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::id::PolicyName;

use crate::active::ActivePolicy;
use crate::available::AvailablePolicy;
use crate::passive::{PassivePolicy, PassiveSettings};

/// The factories. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Registry {
    active: BTreeMap<PolicyName, ActiveFactory>,
    passive: BTreeMap<PolicyName, PassiveFactory>,
    available: BTreeMap<PolicyName, AvailableFactory>,
}

#[derive(Clone)]
struct ActiveFactory(Arc<dyn Fn() -> Box<dyn ActivePolicy> + Send + Sync>);

#[derive(Clone)]
struct PassiveFactory(Arc<dyn BuildPassive>);

trait BuildPassive: Fn(&PassiveSettings) -> Box<dyn PassivePolicy> + Send + Sync {}

impl<F: Fn(&PassiveSettings) -> Box<dyn PassivePolicy> + Send + Sync> BuildPassive for F {}

#[derive(Clone)]
struct AvailableFactory(Arc<dyn Fn() -> Box<dyn AvailablePolicy> + Send + Sync>);

impl Registry {
    /// Registers an active policy; the factory is called once per cluster. A later one of the same name replaces it.
    pub fn active<P: ActivePolicy + 'static>(&mut self, name: &str, factory: impl Fn() -> P + Send + Sync + 'static) {
        self.active.insert(name.into(), ActiveFactory(Arc::new(move || Box::new(factory()))));
    }

    /// Registers a passive policy; the factory is called once per destination. A later one of the same name replaces it.
    pub fn passive<P: PassivePolicy + 'static>(
        &mut self,
        name: &str,
        factory: impl Fn(&PassiveSettings) -> P + Send + Sync + 'static,
    ) {
        self.passive.insert(name.into(), PassiveFactory(Arc::new(move |settings| Box::new(factory(settings)))));
    }

    /// Registers an availability policy; the factory is called once per cluster. A later one of the same name replaces
    /// it.
    pub fn available<P: AvailablePolicy + 'static>(
        &mut self,
        name: &str,
        factory: impl Fn() -> P + Send + Sync + 'static,
    ) {
        self.available.insert(name.into(), AvailableFactory(Arc::new(move || Box::new(factory()))));
    }

    /// Names of the registered active policies.
    pub fn active_names(&self) -> impl Iterator<Item = &PolicyName> {
        self.active.keys()
    }

    /// Names of the registered passive policies.
    pub fn passive_names(&self) -> impl Iterator<Item = &PolicyName> {
        self.passive.keys()
    }

    /// Names of the registered availability policies.
    pub fn available_names(&self) -> impl Iterator<Item = &PolicyName> {
        self.available.keys()
    }

    pub(crate) fn build_active(&self, name: &PolicyName) -> Option<Box<dyn ActivePolicy>> {
        self.active.get(name).map(|factory| (factory.0)())
    }

    pub(crate) fn build_passive(
        &self,
        name: &PolicyName,
        settings: &PassiveSettings,
    ) -> Option<Box<dyn PassivePolicy>> {
        self.passive.get(name).map(|factory| (factory.0)(settings))
    }

    pub(crate) fn build_available(&self, name: &PolicyName) -> Option<Box<dyn AvailablePolicy>> {
        self.available.get(name).map(|factory| (factory.0)())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("active", &self.active.keys())
            .field("passive", &self.passive.keys())
            .field("available", &self.available.keys())
            .finish()
    }
}
