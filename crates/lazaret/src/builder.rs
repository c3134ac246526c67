//! Collects a configuration in code, or reads a file, until nothing is wrong with it.

use std::path::Path;
use std::sync::Arc;

use ::config::{FileKind, Loaded, PolicyNames};
use health::active::ActivePolicy;
use health::available::AvailablePolicy;
use health::passive::{PassivePolicy, PassiveSettings};
use model::cluster::Compat;
use model::config::Config;
use monitor::{Extensions, ProbeBuilder, ProbeSender};

use crate::assembly;
use crate::config::{
    ClusterConfig, DnsConfig, Document, DrainConfig, ErrorPageConfig, ListenerConfig, RecorderConfig, RouteConfig,
    TransportFailureRateOptions,
};
use crate::error::Error;
use crate::inheritance::Inheritance;
use crate::listener_tls;
use crate::pipeline::Pipeline;
use crate::places;
use crate::running::Running;

/// A configuration that nothing is wrong with, and the custom parts it names.
pub struct Lazaret {
    pub(crate) loaded: Loaded,
    pub(crate) pipeline: Pipeline,
    pub(crate) extensions: Extensions,
    pub(crate) file: Option<source::file::File>,
}

impl Lazaret {
    /// Starts to collect.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Reads a file with the built-in policies only. See [`Builder::load`].
    pub fn load(path: &Path, compat: Option<Compat>) -> Result<Self, Error> {
        Self::builder().load(path, compat)
    }

    /// The configuration, defaults filled in.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// What was read: the configuration, where each value came from, and what is worth a word.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Reads the files that the configuration names (certificates, keys, authorities), as the start does, and looks
    /// whether it could open the others, without touching them. Gives what is worth a word about them.
    pub fn check_files(&self) -> Result<Vec<String>, Error> {
        monitor::prepare(&upstream::Tls::new(), self.config())
            .map_err(|error| places::cluster_refused(&self.loaded, error))?;
        let prepared = listener_tls::prepare(&proxy::ServerTls::new(), &self.loaded).map_err(Error::Config)?;
        places::check(&self.loaded).map_err(Error::Config)?;
        let warnings = prepared.warnings.iter().map(ToString::to_string);
        Ok(warnings.chain(places::warnings(&self.loaded)).collect())
    }

    /// Binds every listener, starts the threads, and returns when requests are served.
    pub fn start(self) -> Result<Running, Error> {
        assembly::start(self, Inheritance::none())
    }

    /// The same with sockets that are open already: from a process that hands over, or from the service manager. A process
    /// that hands over is told why when it fails.
    pub fn start_with(self, inheritance: Inheritance) -> Result<Running, Error> {
        let predecessor = inheritance.predecessor();
        let started = assembly::start(self, inheritance);
        if let (Err(error), Some(predecessor)) = (&started, predecessor) {
            Inheritance::decline(&predecessor, error);
        }
        started
    }
}

/// Collects a configuration and custom parts.
#[derive(Default)]
pub struct Builder {
    document: Document,
    extensions: Extensions,
    pipeline: Pipeline,
}

impl Builder {
    /// Listens on `address` (`127.0.0.1:8080`; port 0 takes a free one) with the file's defaults.
    #[must_use]
    pub fn listener(self, id: &str, address: &str) -> Self {
        let listener =
            ListenerConfig { listener_id: id.to_owned(), address: address.to_owned(), ..ListenerConfig::default() };
        self.listener_config(listener)
    }

    /// Listens as told.
    #[must_use]
    pub fn listener_config(mut self, listener: ListenerConfig) -> Self {
        self.document.listeners.push(listener);
        self
    }

    /// Forwards what matches `path` (`/api/{**rest}`) to a cluster.
    #[must_use]
    pub fn route(self, id: &str, path: &str, cluster: &str) -> Self {
        self.route_config(RouteConfig::to_cluster(id, path, cluster))
    }

    /// Routes as told.
    #[must_use]
    pub fn route_config(mut self, route: RouteConfig) -> Self {
        self.document.routes.push(route);
        self
    }

    /// Adds a cluster.
    #[must_use]
    pub fn cluster(mut self, cluster: ClusterConfig) -> Self {
        self.document.clusters.push(cluster);
        self
    }

    /// Traffic threads; one per CPU unless set.
    #[must_use]
    pub fn workers(mut self, workers: u16) -> Self {
        self.document.workers = Some(workers);
        self
    }

    /// Address of the control API; 127.0.0.1:9090 unless set.
    #[must_use]
    pub fn control(mut self, address: &str) -> Self {
        self.document.control = Some(address.to_owned());
        self
    }

    /// Path of the control API's unix socket.
    #[must_use]
    pub fn control_socket(mut self, path: &str) -> Self {
        self.document.control_socket = Some(path.to_owned());
        self
    }

    /// Where the access log goes: `off`, `stdout` or a file.
    #[must_use]
    pub fn access_log(mut self, place: &str) -> Self {
        self.document.access_log = Some(place.to_owned());
        self
    }

    /// Gives each request an id under this header (`x-request-id`); none has one unless set.
    #[must_use]
    pub fn request_id(mut self, header: &str) -> Self {
        self.document.request_id = Some(header.to_owned());
        self
    }

    /// Gives answers of our own a body, where their route has no page of its own.
    #[must_use]
    pub fn error_page(mut self, page: ErrorPageConfig) -> Self {
        self.document.error_pages.push(page);
        self
    }

    /// How a planned stop goes.
    #[must_use]
    pub fn drain(mut self, drain: DrainConfig) -> Self {
        self.document.drain = Some(drain);
        self
    }

    /// How names of destinations are looked up.
    #[must_use]
    pub fn dns(mut self, dns: DnsConfig) -> Self {
        self.document.dns = Some(dns);
        self
    }

    /// How much of what the health core is told is kept, for `lazaret record save`.
    #[must_use]
    pub fn recorder(mut self, recorder: RecorderConfig) -> Self {
        self.document.recorder = Some(recorder);
        self
    }

    /// Process-wide options of TransportFailureRate.
    #[must_use]
    pub fn transport_failure_rate(mut self, options: TransportFailureRateOptions) -> Self {
        self.document.transport_failure_rate = Some(options);
        self
    }

    /// Registers an active policy; clusters name it as `health_check.active.policy`.
    #[must_use]
    pub fn active_policy<P: ActivePolicy + 'static>(
        mut self,
        name: &str,
        factory: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        self.extensions.health.active(name, factory);
        self
    }

    /// Registers a passive policy; clusters name it in `health_check.passive.policies`.
    #[must_use]
    pub fn passive_policy<P: PassivePolicy + 'static>(
        mut self,
        name: &str,
        factory: impl Fn(&PassiveSettings) -> P + Send + Sync + 'static,
    ) -> Self {
        self.extensions.health.passive(name, factory);
        self
    }

    /// Registers an availability policy; clusters name it as `health_check.available_destinations_policy`.
    #[must_use]
    pub fn available_policy<P: AvailablePolicy + 'static>(
        mut self,
        name: &str,
        factory: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        self.extensions.health.available(name, factory);
        self
    }

    /// Registers a balancing policy; clusters name it as `load_balancing`.
    #[must_use]
    pub fn load_balancing_policy(mut self, name: &str, policy: impl balance::Policy + 'static) -> Self {
        self.extensions.balancing.insert(name.into(), Arc::new(policy));
        self
    }

    /// Makes the request of each HTTP probe.
    #[must_use]
    pub fn probe_builder(mut self, builder: impl ProbeBuilder + 'static) -> Self {
        self.extensions.probe_builder = Some(Arc::new(builder));
        self
    }

    /// Sends each HTTP probe.
    #[must_use]
    pub fn probe_sender(mut self, sender: impl ProbeSender + 'static) -> Self {
        self.extensions.probe_sender = Some(Arc::new(sender));
        self
    }

    /// Chooses the stages that requests pass; all of them unless set.
    #[must_use]
    pub fn pipeline(mut self, pipeline: Pipeline) -> Self {
        self.pipeline = pipeline;
        self
    }

    /// Reads what was collected with the file's own reader, and the pages it names.
    pub fn build(self) -> Result<Lazaret, Error> {
        let text = self.document.to_json()?;
        let loaded = ::config::load("code", text.as_bytes(), FileKind::Native, &self.names(), None);
        let loaded = loaded.and_then(source::pages::read);
        self.finish(loaded, None)
    }

    /// Reads a file in place of what was collected; custom parts stay, and [`Running::reload`] reads it again. `compat`
    /// overrides that of every cluster.
    pub fn load(self, path: &Path, compat: Option<Compat>) -> Result<Lazaret, Error> {
        let file = source::file::File::new(path).with_names(self.names());
        let file = match compat {
            Some(compat) => file.with_compat(compat),
            None => file,
        };
        let loaded = file.load();
        self.finish(loaded, Some(file))
    }

    fn finish(
        self,
        loaded: Result<Loaded, Box<::config::Report>>,
        file: Option<source::file::File>,
    ) -> Result<Lazaret, Error> {
        let loaded = loaded.map_err(Error::Config)?;
        self.pipeline.check(&loaded.config)?;
        Ok(Lazaret { loaded, extensions: self.extensions, pipeline: self.pipeline, file })
    }

    /// Names of the custom policies, for the file's reader.
    fn names(&self) -> PolicyNames {
        let Extensions { health, balancing, .. } = &self.extensions;
        PolicyNames {
            active: health.active_names().map(ToString::to_string).collect(),
            passive: health.passive_names().map(ToString::to_string).collect(),
            available: health.available_names().map(ToString::to_string).collect(),
            balancing: balancing.keys().map(ToString::to_string).collect(),
        }
    }
}
